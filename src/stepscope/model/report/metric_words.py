"""What people read of the metrics of evidence (``Evidence.metric``): the one list, for the reports and the page.

Names that read well once their unit words are replaced (``WORDS``) are not listed.
"""

from __future__ import annotations

METRICS: dict[str, str] = {
    "input_wait_ratio": "wait for input, share of the step",
    "python_busy_ratio": "Python function runs, share of the time",
    "python_ns_per_batch": "time in the Python function, a batch",
    "python_ns_per_step": "time in the Python function, a step",
    "python_calls": "calls of the Python function",
    "disturbed_ratio": "more that the step takes because of it",
    "own_cpu_cores": "CPUs that the other threads of the process use",
    "call_ratio": "compute, share of the step",
    "gpu_busy_ratio": "GPU is busy, share of the time",
    "wanted_cores": "CPUs that the job could use",
    "available_cores": "CPUs that it may use",
    "got_cores": "CPUs that it got",
    "others_cores": "CPUs that other processes used",
    "steal_cores": "CPUs that the hypervisor took",
    "throttled_cores": "CPUs that its limit withheld",
}
"""Words of whole metrics."""

WORDS = {"ns": "time", "ratio": "share", "us": "time", "ms": "time"}
"""Unit words in other names, replaced because the value carries the unit."""


def text(metric: str) -> str:
    """The name of a metric in words: ``callback_ns_per_call`` is ``callback time per call``."""
    return METRICS.get(metric) or " ".join(WORDS.get(word, word) for word in metric.split("_"))
