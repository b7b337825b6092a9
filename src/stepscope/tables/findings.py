"""The words of a finding: public API, part of the schemas ``stepscope.report/1`` and ``stepscope.check/1``.

Words: the codebook of the FSE'22 study.
"""

from __future__ import annotations

from typing import Literal

from stepscope.tables.place import Place
from stepscope.tables.structs import Struct

Severity = Literal["high", "medium", "low", "ask", "info", "error", "warning"]
"""By measured cost: high, medium, low, info; ask: one command decides. Of source findings: error, warning, info."""

Origin = Literal["run", "static", "joined"]
"""Origin. run: a detector saw it in a session. static: a rule saw it in the source. joined: both did."""

Basis = Literal["measured", "modelled", "prior", "unknown"]

Safety = Literal["safe", "review", "unsafe"]

PipelineStage = Literal[
    "raw-input",
    "preprocessing",
    "host-to-device",
    "forward-backward",
    "gradient-sharing",
    "device-to-host",
    "output-processing",
    "storage",
    "none",
]

Stage = Literal[
    "environment setting",
    "initialization",
    "data preparation",
    "model building",
    "training",
    "evaluation",
    "hyper parameter tuning",
    "prediction",
    "unknown",
]

Symptom = Literal[
    "Time: slow execution time",
    "Time: slow initialization time",
    "Time: increasing time over time",
    "Time: program hang",
    "Memory: out of memory",
    "Memory: memory leak",
    "Memory: abnormal GPU memory usage",
    "Processor: not using GPU",
    "Processor: abnormal GPU utilization",
    "Processor: abnormal CPU utilization",
    "unknown",
]

Cause = Literal[
    "API: not using efficient API",
    "API: inefficient API usage",
    "API: not using batch API",
    "Model: confusion with computation model",
    "Model: improper hyper parameter",
    "Model: improper model parameter",
    "Model: inefficient model structure",
    "Data: inefficient data transmission",
    "Data: improper data input",
    "Data: inefficient data preprocessing",
    "Library: buggy library version",
    "Library: mismatched library version",
    "Hardware: hardware and code mismatch",
    "Hardware: hardware and library mismatch",
    "Hardware: improper configuration",
    "System: allocator",
    "System: memory layout",
    "System: scheduling",
    "System: network",
    "Python: interpreter overhead",
    "unknown",
]

Outcome = Literal["found", "clear", "undecided", "not-applicable", "failed"]


class Evidence(Struct, frozen=True, kw_only=True):
    """A measured value. ``refs``: records that the page opens; "capture:ID": the capture that it was read from."""

    metric: str
    value: float
    unit: str
    threshold: float | None = None
    refs: tuple[str, ...] = ()


class Cost(Struct, frozen=True, kw_only=True):
    """The predicted gain of the remedy. ``ratio`` of steady wall time, with its interval.

    A cost that is paid once (exposed stage "initialization") is a share of the time from model building to the last
    step. ``ns_per_step``: the same of the mean of all steps; a cost paid once is spread over all steps of the run.
    """

    ratio: float
    low: float
    high: float
    ns_per_step: int = 0
    basis: Basis = "measured"
    exclusive_ratio: float | None = None
    """Maximum gain in addition to the findings before it (docs/reports.md); null outside a run's report."""
    turn_ratio: float | None = None
    """Share of the mean turn (``Report.turns``), by which findings are ranked; null without turns, or where the steps
    are nearly all of a turn. Equal to ``ratio`` for what lies between the steps of each turn: both are of the turn."""

    @property
    def weight(self) -> float:
        """By what findings are ranked."""
        return self.ratio if self.turn_ratio is None else self.turn_ratio

    @property
    def of_turn(self) -> bool:
        """Whether ``ratio`` is a share of the mean turn, not of the steps."""
        return self.turn_ratio is not None and self.turn_ratio == self.ratio


class Remedy(Struct, frozen=True, kw_only=True):
    """A change to make. ``what_if``: the command that measures it, if it can be tried without a change of the code."""

    id: str
    text: str
    safety: Safety = "review"
    what_if: str | None = None
    rule: str = ""
    """Code of the static rule that advises it; "" for a detector's own advice."""
    fix: str = ""
    """Action of ``check --fix`` (safety "safe"), or with ``--unsafe-fixes`` ("unsafe"): "Add drop_remainder=True"."""
    edit: str | None = None
    """Command that shows the edit, from the job's working directory, if the checker can make it."""


class LinePart(Struct, frozen=True, kw_only=True):
    """A part of the time of a finding's lines. Shares are of their sampled time."""

    kind: str
    """Kind of the work: "unzip", "sort" ...; "" if it is not known."""
    entry: str
    """The library's function that the lines call; "": the lines themselves, or C code, which has no frame."""
    innermost: str
    """The innermost Python function in most of this part; "" if it is ``entry``."""
    ratio: float
    low: float
    high: float


class LineWork(Struct, frozen=True, kw_only=True):
    """What a finding's lines do, by the stacks sampled below them."""

    text: str
    """All of it as a sentence."""
    short: str
    """The reason in a few words; "" if no part of the time has one."""
    samples: int
    """Stack samples on the lines, the basis of the shares."""
    parts: tuple[LinePart, ...] = ()
    """The largest first."""
    ran_ratio: float | None = None
    """Share of the time on a CPU; null if it is not known."""
    function_calls_per_step: float | None = None
    """Calls of their function, where each is recorded."""
    calls_per_step: float | None = None
    """System calls that read or write, of all lines of the thread, by the kernel's counters. Null if not counted."""
    bytes_per_step: float | None = None
    """Bytes that these calls moved."""


class Finding(Struct, frozen=True, kw_only=True):
    """One cause of lost time, with its evidence and its cost."""

    code: str
    name: str
    title: str
    severity: Severity
    confidence: float
    symptom: Symptom
    cause: Cause
    introduced_stage: Stage
    exposed_stage: Stage
    pipeline_stage: PipelineStage
    where: tuple[Place, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    cost: Cost
    remedies: tuple[Remedy, ...] = ()
    explanation: str = ""
    """Explanation of two or three sentences beyond the title, for the long report."""
    does: LineWork | None = None
    """What the lines of the first place do; null where too few stacks show it."""
    origin: Origin = "run"
    """Origin. A static finding in a run's report has the cost measured at its lines; a joined one the detector's."""
    related_codes: tuple[str, ...] = ()
    """Codes of rules or detectors that see the same from the other side. For a joined finding: the rules that did."""
    rare: str = ""
    """Why a static finding is only info: what it says of how rarely its lines run; "" if they may run often."""
    seen: bool | None = None
    """Flag for a static finding in a run's report: the run saw its lines. Null elsewhere."""


class Checked(Struct, frozen=True, kw_only=True):
    """Outcome of one detector. ``missing`` names signals, ``hint`` the command or version that provides them."""

    detector: str
    name: str
    outcome: Outcome
    missing: tuple[str, ...] = ()
    hint: str = ""
    capture: str = ""
    """Kind of capture that would decide an undecided detector ("ops"); "" if none would."""
    suspicion: str = ""
    """What an undecided detector suspects; "" if it has only a question."""
    suspected_ratio: float = 0.0
    """Largest share of the steady wall time that the suspicion may cost; 0: not known."""
    where: tuple[Place, ...] = ()
    """Places of what is suspected, where known."""


class Diagnostic(Struct, frozen=True, kw_only=True):
    """A problem of stepscope itself: lost records, a probe that did not attach, missing rights."""

    code: str
    text: str


def severity_of(ratio: float) -> Severity:
    """Severity from the share of steady wall time: high from 25 %, medium 10 %, low 3 %, else info (decision 0003)."""
    for floor, severity in ((0.25, "high"), (0.10, "medium"), (0.03, "low")):
        if ratio >= floor:
            return severity  # type: ignore[return-value]
    return "info"
