"""What the collector may ask of a measured process, checked: everything in a command is hostile until here."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PROFILER = "profiler"
RUN_METADATA = "run-metadata"
MAX_STEPS = 1_000
MAX_SECONDS = 120.0
MAX_MARGIN = 100
MAX_ANCHORS = 256
MAX_TEXT = 1_000
ECHOED = ("asked_by", "request", "title")
"""Fields that go back with the answer as they came: a sidecar that is started again knows what it had asked for."""
_MAX_NUMBER = 1 << 32


class Order:
    """One capture that was asked for."""

    __slots__ = ("anchors", "echo", "identity", "level", "margin", "seconds", "steps", "task", "thread", "usual")

    def __init__(self, fields: Mapping[str, object]) -> None:
        """Read the fields of a command.

        Raises:
            ValueError: a field is missing or has a value that is not allowed.
        """
        self.identity = str(fields["id"])
        self.steps = int(_within(fields, "steps", 1, MAX_STEPS))
        """How many steps, or runs of ``task``."""
        self.seconds = float(_within(fields, "seconds", 0.01, MAX_SECONDS))
        """After which it ends with the steps that it has, as soon as it has one."""
        self.level = int(_within(fields, "level", 1, 3))
        """TensorFlow's host_tracer_level."""
        self.margin = int(_within(fields, "margin", 0, MAX_MARGIN))
        """Steps before and after it that are recorded in full, to set the traced ones against."""
        self.thread = int(_within(fields, "thread", 0, _MAX_NUMBER))
        """The thread that makes the steps; 0: the first that makes one."""
        self.anchors = frozenset(_pairs(fields.get("anchors"), "anchors"))
        """(kind, name) of the records whose ends are the ends of steps."""
        self.usual = frozenset(_pairs(fields.get("usual", []), "usual"))
        """(kind, name) of other calls that most steps make; ``watch`` takes a series of any other for an evaluation."""
        self.echo = {name: str(fields.get(name, ""))[:MAX_TEXT] for name in ECHOED}
        task = fields.get("task")
        if task is not None and (not isinstance(task, str) or len(task) > MAX_TEXT):
            raise ValueError("task: expected a text of at most %d characters" % MAX_TEXT)
        self.task: str | None = task
        """What a Session.run fetches, as its record is named: the next runs of it are traced, nothing else."""

    @property
    def way(self) -> str:
        """Who traces: TensorFlow's profiler, or the session itself."""
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
