"""Validates the collector's requests to a measured process: everything in a command is hostile until here."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PROFILER = "profiler"
RUN_METADATA = "run-metadata"
MAX_STEPS = 1_000
MAX_SECONDS = 120.0
MAX_AIM_SECONDS = 200.0
MAX_MARGIN = 100
MAX_ANCHORS = 256
MAX_TEXT = 1_000
ECHOED = ("asked_by", "request", "title", "joint")
"""Fields returned unchanged with the answer, so that a restarted sidecar knows what it had requested."""
_MAX_NUMBER = 1 << 32


class Aim:
    """When a capture begins: so many steps after something has happened, or at a moment that several tasks share."""

    __slots__ = ("begin_ns", "flag", "longer_ns", "mark_ns", "pairs", "seconds", "skip")

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.pairs = frozenset(_pairs(fields.get("pairs", []), "pairs"))
        """(kind, name) of the records whose writing is the moment."""
        self.flag = int(_within(fields, "flag", 0, 1 << 16))
        """Flag that these records must have; 0 for none."""
        self.longer_ns = int(_within(fields, "longer_ns", 0, 1 << 62))
        """A step longer than this is the moment; 0 if no step is."""
        self.skip = int(_within(fields, "skip", 0, _MAX_NUMBER))
        """Number of steps after the moment before the capture begins."""
        self.seconds = float(_within(fields, "seconds", 0.01, MAX_AIM_SECONDS))
        """Longest wait in seconds; after it the capture begins at once."""
        self.begin_ns = int(_within(fields, "begin_ns", 0, 1 << 62)) if "begin_ns" in fields else 0
        """CLOCK_MONOTONIC at which recording begins; 0: at no particular moment."""
        self.mark_ns = int(_within(fields, "mark_ns", 0, 1 << 62)) if "mark_ns" in fields else 0
        """The first marked step is the one that begins after it: when every task of the job records."""


class CaptureCommand:
    """One requested capture."""

    __slots__ = (
        "aim",
        "anchors",
        "before",
        "echo",
        "identity",
        "level",
        "margin",
        "seconds",
        "steps",
        "task",
        "thread",
        "usual",
    )

    def __init__(self, fields: Mapping[str, object]) -> None:
        """Read the fields of a command.

        Raises:
            ValueError: a field is missing or has a value that is not allowed.
        """
        self.identity = str(fields["id"])
        self.steps = int(_within(fields, "steps", 1, MAX_STEPS))
        """Number of steps, or of runs of ``task``."""
        self.seconds = float(_within(fields, "seconds", 0.01, MAX_SECONDS))
        """Seconds after which the capture ends with the steps that it has, once it has at least one."""
        self.level = int(_within(fields, "level", 1, 3))
        """TensorFlow's host_tracer_level."""
        self.margin = int(_within(fields, "margin", 0, MAX_MARGIN))
        """Number of steps before and after the traced ones that are recorded in full, for comparison."""
        self.before = int(_within(fields, "before", 0, MAX_MARGIN)) if "before" in fields else self.margin
        """Those of them before, if fewer: more have been recorded in full already."""
        self.thread = int(_within(fields, "thread", 0, _MAX_NUMBER))
        """Id of the thread that makes the steps; 0 means the first thread that makes one."""
        self.anchors = frozenset(_pairs(fields.get("anchors"), "anchors"))
        """(kind, name) of the records whose ends are the ends of steps."""
        self.usual = frozenset(_pairs(fields.get("usual", []), "usual"))
        """(kind, name) of other calls that most steps make; ``watch`` takes a series of any others for an
        evaluation."""
        self.echo = {name: str(fields.get(name, ""))[:MAX_TEXT] for name in ECHOED}
        aim = fields.get("aim")
        self.aim = Aim(aim) if isinstance(aim, dict) else None
        """When it begins; None: at once."""
        task = fields.get("task")
        if task is not None and (not isinstance(task, str) or len(task) > MAX_TEXT):
            raise ValueError("task: expected a text of at most %d characters" % MAX_TEXT)
        self.task: str | None = task
        """Fetches of a Session.run, as its record is named: only the next runs with these fetches are traced."""

    @property
    def way(self) -> str:
        """The tracer to use: TensorFlow's profiler, or the session itself."""
        return PROFILER if self.task is None else RUN_METADATA


def _within(fields: Mapping[str, object], name: str, low: float, high: float) -> float:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ValueError("%s: got %.40r, expected a number from %g to %g" % (name, value, low, high))
    return value


def _pairs(value: object, field: str) -> list[tuple[int, int]]:
    pairs = value if isinstance(value, list) else None
    if pairs is None or len(pairs) > MAX_ANCHORS:
        raise ValueError("%s: expected at most %d pairs of numbers" % (field, MAX_ANCHORS))
    found = []
    for pair in pairs:
        if not isinstance(pair, list) or [type(part) for part in pair] != [int, int]:
            raise ValueError("%s: got %.40r, expected (kind, name)" % (field, pair))
        found.append((pair[0], pair[1]))
    return found
