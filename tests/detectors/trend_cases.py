"""Fixtures of the detectors that look at the course of time."""

from __future__ import annotations

from tests.derive.sessions import MS, US
from tests.detectors.fixture import Expected, Fixtures
from tests.detectors.jobs import CALL, LOOP_LINE, MAKE, REPORT, nothing, train_loop, unsampled
from tests.detectors.trend_jobs import (
    MB,
    crowded,
    filling,
    hung,
    leaking,
    loading,
    passes,
    profiling,
    rising,
    stalled,
    starting,
    summarised,
)

LEAST_LEAK = 32 * MB // 80
"""Per step: of the ten seconds, samples from the first to the ninth lie within the steady steps."""
TRD001 = Fixtures(
    firing=lambda: rising(10 * MS, 150 * MS),
    expected=Expected(
        severity="high",
        cost=0.7,
        where=(("train.py", 8), ("train.py", CALL)),
        metrics=("rising_ratio", "growth", "rest_growth", "ns_per_step_per_step", "samples_on_code"),
        title=("step time rises", "report", "10 ms", "150 ms", "70 %"),
        pipeline_stage="output-processing",
        remedy="keep-running-value",
    ),
    silent=lambda: rising(10 * MS, 40 * MS, call=30 * MS, call_last=120 * MS),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: rising(2 * MS, 8 * MS - 4 * US),
    at=lambda: rising(2 * MS, 8 * MS + 4 * US),
)
MEM001 = Fixtures(
    firing=lambda: leaking(10 * MB),
    expected=Expected(
        severity="low",
        cost=800 * MB / 4096 * 1600 / 8e9,
        where=(("train.py", CALL),),
        metrics=(
            "bytes_per_step",
            "bytes_per_step_low",
            "bytes_per_step_high",
            "growth_bytes",
            "seconds_to_limit",
            "graphs_traced",
            "major_faults",
        ),
        title=("memory rises by 10", "memory leak", "full in"),
        pipeline_stage="none",
        remedy="keep-numbers",
        basis="modelled",
    ),
    silent=lambda: filling(10 * MB, 60),
    not_applicable=lambda: train_loop(80 * MS),
    missing="samples of the process's memory",
    below=lambda: leaking(LEAST_LEAK - 1),
    at=lambda: leaking(LEAST_LEAK + 1),
)
CFG006 = Fixtures(
    firing=lambda: profiling(150 * MS),
    expected=Expected(
        severity="medium",
        cost=0.2,
        where=(("train.py", 12),),
        metrics=("recorded_ratio", "recorded_steps", "slower_ratio", "stop_ns"),
        title=("own profiler", "59 steps", "60 %", "50 % longer"),
        introduced="environment setting",
        pipeline_stage="forward-backward",
        remedy="profile-some-steps",
        per_step=25 * MS,
    ),
    silent=lambda: profiling(150 * MS, steps=50),
    not_applicable=nothing,
    missing="steps",
    below=lambda: profiling(106 * MS),
    at=lambda: profiling(107 * MS),
)
INP010 = Fixtures(
    firing=lambda: starting(401 * MS),
    expected=Expected(
        severity="high",
        cost=9 * 400 / (10 * 219 + 9 * 400),
        where=(("train.py", 72), ("train.py", 71)),
        metrics=("first_batches_ratio", "first_batch_ns", "passes"),
        title=("wait of 400 ms for its first batch", "skip behind a map"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="throw-away-first",
        per_step=9 * 400 * MS // 98,
    ),
    silent=lambda: starting(400 * MS, passes=3),
    not_applicable=nothing,
    missing="steps",
    below=lambda: starting(41 * MS),
    at=lambda: starting(44 * MS),
)
EVERY_16 = range(16, 98, 16)
HST009 = Fixtures(
    firing=lambda: stalled(200 * MS),
    expected=Expected(
        severity="medium",
        cost=9 * 200 / 9800,
        where=(("train.py", 8), ("train.py", CALL)),
        metrics=("stall_ratio", "stall_ns", "period_steps", "period_ns", "regular_ratio", "stalls"),
        title=("periodic stall", "every 10 steps", "Python in report", "200 ms", "18 %"),
        pipeline_stage="output-processing",
        remedy="do-it-less-often",
    ),
    silent=lambda: passes(stalled(200 * MS), range(10, 99, 10)),
    not_applicable=nothing,
    missing="steps",
    below=lambda: stalled(49 * MS - 10 * US, EVERY_16),
    at=lambda: stalled(49 * MS + 10 * US, EVERY_16),
)
HNG001 = Fixtures(
    firing=lambda: hung(30),
    expected=Expected(
        severity="high",
        cost=30 / 39.98,
        per_step=300_000_000,
        where=(("train.py", REPORT), ("loader.py", 20)),
        metrics=("standstill_ns", "longest_before_ns", "cores", "samples_in_place"),
        title=("hangs", "no progress for 30 s", "after 100 steps", f"main (train.py:{REPORT})", "in get", "75 %"),
        pipeline_stage="none",
        remedy="bound-the-wait",
    ),
    silent=lambda: hung(30, exit_code=0),
    not_applicable=nothing,
    missing="stack samples of any thread",
    below=lambda: hung(9.999),
    at=lambda: hung(10),
)
INI001 = Fixtures(
    firing=lambda: loading(9900 * MS),
    expected=Expected(
        severity="high",
        cost=0.5,
        per_step=99_000_000,
        where=(("loader.py", 7), ("train.py", MAKE)),
        metrics=(
            "initialisation_ratio",
            "import_ns",
            "own_code_ns",
            "model_building_ns",
            "first_calls_ns",
            "first_batch_ns",
            "samples_on_code",
        ),
        title=("slow initialisation", "read_all", "9.9 s before the first step", "50 %"),
        introduced="data preparation",
        exposed="initialization",
        pipeline_stage="none",
        remedy="load-in-pipeline",
    ),
    silent=lambda: loading(9900 * MS, traced=True),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: loading(3299 * MS),
    at=lambda: loading(3301 * MS),
)
CFG003 = Fixtures(
    firing=lambda: crowded(40),
    expected=Expected(
        severity="medium",
        cost=0.192,
        where=(("train.py", LOOP_LINE + 1),),
        metrics=(
            "runnable_threads",
            "sharing_threads",
            "available_cores",
            "switches_per_cpu_second",
            "python_ratio",
        ),
        title=("oversubscribed threads", "40 threads share 2 CPUs", "40 are runnable", "19 %"),
        introduced="environment setting",
        pipeline_stage="forward-backward",
        remedy="threads-as-cpus",
        basis="modelled",
    ),
    silent=lambda: crowded(40, runnable=2.5),
    not_applicable=lambda: train_loop(80 * MS),
    missing="CPU samples of the host",
    below=lambda: crowded(40, runnable=7.99),
    at=lambda: crowded(40, runnable=8.01),
)
GIB_AN_HOUR = (1 << 30) / 36_000
"""Per step: ten of them are a second."""
HST010 = Fixtures(
    firing=lambda: summarised(MB, dur=4 * MS),
    expected=Expected(
        severity="low",
        cost=0.04,
        where=(("train.py", REPORT),),
        metrics=("bytes_per_hour", "bytes_per_step", "summary_calls_per_step", "summary_ratio"),
        title=("summaries fill the disk", "1 MiB a step", "an hour"),
        pipeline_stage="storage",
        remedy="summaries-less-often",
    ),
    silent=lambda: summarised(1000, saved=200 * MB),
    not_applicable=lambda: train_loop(80 * MS),
    missing="samples of the process's memory",
    below=lambda: summarised(int(GIB_AN_HOUR) - 1),
    at=lambda: summarised(int(GIB_AN_HOUR) + 1),
)
