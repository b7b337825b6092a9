"""Words and short texts shared by all reports, so that terminal, Markdown and page agree.

Everything from a session is untrusted: names and paths pass through :func:`printable` before they reach a terminal
or a page, so that no control sequence, line break or bidirectional override gets through.
"""

from __future__ import annotations

import math
import shlex
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Literal

from stepscope.model import frameworks
from stepscope.model.report import metric_words
from stepscope.model.report.components import COMPONENTS, REF
from stepscope.tables.place import is_cell
from stepscope.tables.units import WHOLE_FROM, format_bytes, format_ns, format_rate, singular

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.model.report.overhead import Overhead
    from stepscope.model.report.report import Report, SessionSummary, SourceCheck, StageShare
    from stepscope.tables.findings import Cost, Diagnostic, Finding
    from stepscope.tables.place import Place

COMPONENT_WORDS: dict[str, str] = {name: about.word for name, about in COMPONENTS.items()}
COMPONENT_WORDS["unmeasured"] = "not measured"
REST = "other-python"
UNTOLD = "framework calls and other Python"
"""What ``REST`` is where the framework's calls are not measured (``derive.unmeasured``)."""
"""Display name of each component of the step."""

STAGE_WORDS = {
    "raw-input": "raw input",
    "preprocessing": "preprocessing",
    "host-to-device": "host to device",
    "forward-backward": "forward and backward",
    "gradient-sharing": "gradient sharing",
    "device-to-host": "device to host",
    "output-processing": "output processing",
    "storage": "storage",
    "none": "between steps",
}

ROLE_WORDS = {
    "steps": "runs the steps",
    "tasks": "runs other tasks",
    "server": "is a server and runs no steps itself",
    "idle": "runs nothing that repeats",
}
ROLE_COUNT_WORDS = {
    "steps": "runs the steps",
    "tasks": "run other tasks",
    "server": "are servers and run no steps themselves",
    "idle": "run nothing that repeats",
}
"""What measured processes do, as counts of processes."""

SHORT_STAGE_WORDS = {"forward-backward": "forward/backward", "output-processing": "output"}
"""Short names for the line that lists all eight stages."""

NO_FRAMEWORK, UNKNOWN_FRAMEWORK = "no framework in the job", "framework not known"
SEPARATOR = " \u00b7 "
"""Between the items of a line."""

TWO_DIGITS_FROM = 9.95
SHOWN_FROM = 0.005
"""Smaller values print as 0, which is clearer than 0.00."""
LITTLE = 0.1
"""A lower bound that is at most this part of the upper one says nothing."""
MIN_ADDED = 0.0005
"""A smaller share prints as 0.0 %."""


def printable(text: str) -> str:
    """``text`` on one line, with every control, format and unassigned character replaced by U+FFFD."""
    flat = " ".join(text.split())
    if flat.isascii() and flat.isprintable():
        return flat
    return "".join("\ufffd" if unicodedata.category(c).startswith("C") else c for c in flat)


def component_word(component: str) -> str:
    """Display name of a component of the step; an unknown component keeps its identifier."""
    return COMPONENT_WORDS.get(component) or printable(component.replace("-", " "))


def component_of(report: Report, component: str) -> str:
    """The same in a report: where the framework's calls are not measured, they are in the rest of the step."""
    unseen = any(one.stage == "output-processing" and one.ratio is None for one in report.stages)
    if component == REST and unseen and all(part.component != "call" for part in report.anatomy):
        return UNTOLD
    return component_word(component)


def stage_word(stage: str) -> str:
    """Display name of a pipeline stage."""
    return STAGE_WORDS.get(stage) or printable(stage.replace("-", " "))


def percent(ratio: float) -> str:
    """A share in percent without the sign: one decimal below ten, none above."""
    return f"{100 * ratio:.{_digits(ratio)}f}"


def _digits(ratio: float) -> int:
    return 0 if abs(ratio) >= WHOLE_FROM or ratio == 0 else 1


def share(cost: Cost) -> str:
    """``58 % (55-60, modelled)``: a cost with its bounds, with as many digits as the cost itself.

    One number where the bounds print alike; the bounds alone where the cost is one of them, and no lower bound that is
    next to nothing: ``55-60 %``, ``up to 60 %``.
    """
    digits = _digits(cost.ratio)
    middle, low, high = (f"{100 * ratio:.{digits}f}" for ratio in (cost.ratio, cost.low, cost.high))
    basis = "" if cost.basis == "measured" else cost.basis
    if low != high and middle not in {low, high}:
        return f"{middle} % ({', '.join(filter(None, [f'{low}-{high}', basis]))})"
    open_ = low != high and cost.low <= LITTLE * cost.high
    said = f"{middle} %" if low == high else f"up to {high} %" if open_ else f"{low}-{high} %"
    return f"{said} ({basis})" if basis else said


def place_text(place: Place, *, short: bool = False) -> str:
    """``train.py:41 Model.make_dataset``, ``cell 3, line 5 train``; ``short`` drops the classes around the function."""
    function = printable(place.function)
    if short:
        function = function.rpartition(".")[2]
    line = f"{', line ' if is_cell(place.file) else ':'}{place.line}" if place.line else ""
    return f"{printable(place.file)}{line} {function}".rstrip()


def cost_text(cost: Cost, *, between_steps: bool) -> str:
    """``costs 58 % (55-60) of the step``, with the basis of a cost that is not measured."""
    whole = "turn" if cost.of_turn else "run time" if between_steps else "step"
    turn = "" if cost.turn_ratio is None or cost.of_turn else f", {percent(cost.turn_ratio)} % of a turn"
    if cost.basis == "unknown":
        most = f", at most {percent(cost.high)} % of the {whole}" if cost.high else ""
        return f"cost unknown{most}"
    said = f"costs {share(cost)} of the {whole}{turn}"
    added = cost.exclusive_ratio
    if added is None or percent(added) == percent(cost.ratio):
        return said
    left = f"at most {percent(added)} % more" if added >= MIN_ADDED else "nothing more"
    return f"{said}; {left} is saved once the findings above are fixed"


def whole_of(finding: Finding) -> Literal["step", "turn", "run"]:
    """What the cost of a finding is a share of."""
    return "turn" if finding.cost.of_turn else "run" if is_between_steps(finding) else "step"


def proof_word(finding: Finding) -> str:
    """Verb for the command of a remedy: it proves the saving, or decides a suspicion."""
    return "find out" if finding.severity == "ask" else "prove it"


def speedup_text(ratio: float) -> str:
    """Speed-up of the job without this share: ``1 / (1 - ratio)``, at most 100."""
    times = 1 / max(1 - ratio, 0.01)
    return f"{times:.0f}" if times >= TWO_DIGITS_FROM else f"{times:.1f}"


def is_between_steps(finding: Finding) -> bool:
    """Whether the time is lost outside the steps: before the first, or between passes over them. What lies between two
    steps is a component of the step: its costs are shares of the steps' time, not of the run's.
    """
    inside = any(ref.startswith(REF) for evidence in finding.evidence for ref in evidence.refs)
    return finding.exposed_stage == "initialization" or (finding.pipeline_stage == "none" and not inside)


def significant(report: Report) -> list[Finding]:
    """The findings above info, in the report's order (``detectors.base.rank``)."""
    return [f for f in report.findings if f.severity != "info"]


def overhead_text(overhead: Overhead, *, steps: int = 1) -> str:
    """``profiling overhead 0.3 % (0.0-0.9)``; without steps, the sidecar's share of a core."""
    if not steps:
        return f"profiling overhead {100 * overhead.sidecar_core_ratio:.1f} % of a core"
    captures = f", captures {100 * overhead.captures_ratio:.1f} %" if overhead.captures else ""
    bounds = f"{100 * overhead.low:.1f}-{100 * overhead.high:.1f}"
    return f"profiling overhead {100 * overhead.ratio:.1f} % ({bounds}){captures}"


PROCESS_ROLE_LIMIT = 4
"""Most processes listed one by one; beyond this, only a count per role is given."""


def process_role_items(summary: SessionSummary) -> list[str]:
    """What each process of a multi-process job does; empty for a single process that runs the steps."""
    if not any(m.role == "server" for m in summary.members) and len(summary.members) < PROCESS_ROLE_LIMIT // 2:
        return []
    if len(summary.members) > PROCESS_ROLE_LIMIT:
        kinds = Counter(m.role for m in summary.members)
        return [f"{count} {ROLE_COUNT_WORDS[role]}" for role, count in kinds.items()]
    return [f"{printable(m.member) or 'process'} ({m.pid}) {ROLE_WORDS[m.role]}" for m in summary.members]


def inference_items(summary: SessionSummary) -> list[str]:
    """Configuration of ONNX Runtime sessions."""
    found = []
    for setup in summary.inference:
        threads = plural(setup.intra_op_threads, "intra-op thread") if setup.intra_op_threads else "one thread per core"
        if setup.inter_op_threads is not None:
            beside = plural(setup.inter_op_threads, "inter-op thread") if setup.inter_op_threads else "as many inter-op"
            threads += f", {beside}"
        spins = "spinning" if setup.spins and setup.intra_op_threads != 1 else "not spinning"
        arena = "arena on" if setup.arena else "arena off"
        providers = ", ".join(map(printable, setup.providers))
        found.append(f"{printable(setup.model)}: {threads}, {spins}, {arena}, {providers}")
    return found


def time_pair(first: float, second: float) -> tuple[str, str]:
    """Two durations, the second without its unit if it is the same: ``("78.9 ms", "96.1")``."""
    one, two = format_ns(first), format_ns(second)
    return one, two.rpartition(" ")[0] if one.rpartition(" ")[2] == two.rpartition(" ")[2] else two


def throughput_text(summary: SessionSummary) -> str:
    """``812 samples/s``, ``12.7 steps/s`` if samples are unknown, or nothing."""
    rates = summary.throughput
    if rates.samples_per_s is not None:
        return f"{format_rate(rates.samples_per_s)} samples/s"
    return f"{format_rate(rates.steps_per_s)} steps/s" if rates.steps_per_s is not None else ""


def framework_text(summary: SessionSummary) -> str:
    """The framework, or a note that there was none, or that it is not known."""
    name = printable(summary.framework)
    return (name or UNKNOWN_FRAMEWORK) if name != "none" else NO_FRAMEWORK


def backend_text(summary: SessionSummary) -> str:
    """``Keras on JAX``; "" for Keras on TensorFlow, and without Keras."""
    name = frameworks.backend_of(summary.framework)
    return f"Keras on {frameworks.TITLES.get(name, printable(name))}" if name else ""


def value_text(value: float, unit: str) -> str:
    """A measured value with its unit: shares as percent, nanoseconds and bytes scaled, the rest with three digits."""
    if not math.isfinite(value):
        return "unknown"
    if unit == "ratio":
        return f"{percent(value)} %"
    if unit == "ns":
        return format_ns(value)
    if unit == "bytes":
        return format_bytes(value)
    number = f"{value:,.0f}" if value == int(value) else format_rate(value)
    number = "0" if abs(value) < SHOWN_FROM else number
    return number if unit in ("", "count") else f"{number} {printable(singular(unit) if number == '1' else unit)}"


def metric_text(metric: str) -> str:
    """The name of a metric in words: ``callback_ns_per_call`` is ``callback time per call``."""
    return printable(metric_words.text(metric))


def is_imported(report: Report) -> bool:
    """Whether the session holds only files of other tools, and no measured job."""
    return not report.session.processes and bool(report.op_traces or report.stack_files)


def analysed_file(report: Report) -> str:
    """The imported file that the report is about, if there are several."""
    return report.traced.file if report.traced is not None else ""


def subject(report: Report) -> str:
    """What a report is about: the command, else the imported files, else the session."""
    files = ", ".join(trace.file for trace in report.op_traces if trace.file) if is_imported(report) else ""
    return shlex.join(report.session.command) or files or report.session.id


def plural(count: int, word: str) -> str:
    """``1 step``, ``2 steps``, ``2 processes``, ``2 batches``."""
    ending = "" if count == 1 else "es" if word.endswith(("s", "ch")) else "s"
    return f"{count:,} {word}{ending}"


def steps_text(summary: SessionSummary) -> str:
    """``1,200 steps``, ``at least 40 steps``."""
    return f"{'at least ' if summary.steps_at_least else ''}{plural(summary.steps, 'step')}"


def basis_text(stage: StageShare) -> str:
    """Basis of a stage's share, or why there is none, without the leading "not measured"."""
    return printable(stage.basis).removeprefix(BLIND)


BLIND = "not measured: "


def seen_stages(stages: Iterable[StageShare]) -> list[str]:
    """Stages with their shares, ``storage 0 %``; a stage counted in its neighbour is joined to it."""
    items, beside = [], ""
    for stage in stages:
        if stage.ratio is not None:
            items.append(f"{beside}{_short(stage)} {percent(stage.ratio)} %")
        beside = f"{_short(stage)} + " if stage.ratio is None and not stage.basis.startswith(BLIND) else ""
    return items


def _short(stage: StageShare) -> str:
    return SHORT_STAGE_WORDS.get(stage.stage) or stage_word(stage.stage)


def blind_stages(stages: Iterable[StageShare]) -> list[str]:
    """Stages that were not measured, by what would measure them: ``host to device (needs an op trace)``."""
    reasons: dict[str, list[str]] = {}
    for stage in stages:
        if stage.ratio is None and stage.basis.startswith(BLIND):
            reasons.setdefault(basis_text(stage), []).append(_short(stage))
    return [f"{_all(names)} ({reason})" for reason, names in reasons.items()]


def _all(names: list[str]) -> str:
    return "all eight" if len(names) == len(STAGE_WORDS) - 1 else ", ".join(names)


def source_items(check: SourceCheck | None) -> list[str]:
    """Static findings without a measured counterpart: ``2 static findings on lines not seen in this run``."""
    if check is None:
        return []
    cheap = sum(bool(f.seen) for f in check.findings)
    unseen = len(check.findings) - cheap + check.not_shown
    counts = ((unseen, "on lines not seen in this run"), (cheap, "on lines without measured cost"))
    return [f"{plural(count, 'static finding')} {where}" for count, where in counts if count]


def seen_text(finding: Finding) -> str:
    """Whether the lines of a static finding were seen in the run."""
    return "seen, no measured cost" if finding.seen else "not seen"


def checked_sources(check: SourceCheck) -> str:
    """``4 rules on 3 files (812 lines) for TensorFlow 2.21``."""
    size = f"{plural(check.files, 'file')} ({plural(check.lines, 'line')})"
    return f"{plural(check.rules, 'rule')} on {size} for TensorFlow {printable(check.tensorflow)}"


def merged_diagnostics(diagnostics: Iterable[Diagnostic]) -> list[tuple[str, str, int]]:
    """Diagnostics (code, text, how often), duplicates merged, in order of first appearance."""
    counts = Counter((printable(d.code), printable(d.text)) for d in diagnostics)
    return [(code, text, count) for (code, text), count in counts.items()]


def measured_items(report: Report) -> list[str]:
    """What the samplers measured of a job, with or without steps."""
    series = report.series

    def mean(key: str) -> float | None:
        values = series.get(key)
        return sum(values) / len(values) if values else None

    items: list[str] = []
    if (cores := mean("res:cpu_cores")) is not None:
        others = mean("res:others_cores")
        items.append(f"CPU {cores:.1f} cores" + (f" (others {others:.1f})" if others is not None else ""))
    if (wait := mean("res:wait_cores")) is not None:
        items.append(f"waiting for a CPU {wait:.1f} cores")
    if (busy := mean("res:gpu_busy_percent")) is not None:
        held = max(series.get("res:gpu_reserved_mb") or [0.0])
        items.append(f"GPU busy {busy:.0f} %, at most {format_rate(held)} MB of it in use")
    if memory := series.get("res:rss_mb"):
        items.append(f"peak memory of the process {format_rate(max(memory))} MB")
    for key, word in (("res:read_mb_s", "read"), ("res:write_mb_s", "written")):
        if (rate := mean(key)) is not None:
            items.append(f"{word} {rate:.1f} MB/s")
    return items
