"""The result of ``stepscope fix``: public API, schema ``stepscope.fix/1`` (additions only).

``docs/schemas/fix-1.json`` is generated from these structs.
"""

from __future__ import annotations

from typing import Literal

from stepscope.model.report.whatif import Measure
from stepscope.tables.structs import Struct

SCHEMA = "stepscope.fix/1"

EditClass = Literal["rule", "same", "results", "order", "less"]
"""What an edit may change. rule: nothing, by the rule that makes it. same: the last digits, because the same
mathematics is computed otherwise. results: results in some programs, so that its output has to be equal to the bit.
order: the order of random operations or of the data. less: less work is done. The last two need ``--allow``."""
Sameness = Literal["", "bit-equal", "within", "by-rule", "allowed"]
"""How the patched program is known to compute the same. bit-equal: all its output is equal. within: each logged number
is within 1e-5. by-rule: the program's own runs differ, and the rule of the edit says so. allowed: by ``--allow``. "":
it is not known."""
EditOutcome = Literal["kept", "no-gain", "not-sure", "other-results", "not-repeatable", "failed", "no-time", "unproven"]
"""Outcome. no-gain: the rounds that choose show less than 3 %. not-sure: the lower bound of the fresh rounds is below
3 %. not-repeatable: unchanged runs differ, and only rules prove anything. no-time: ``--time`` was over. unproven:
nothing was run with it; it is in the patch."""


class ProvenRounds(Struct, frozen=True, kw_only=True):
    """A set of rounds, each of them a run without the edit and one with it."""

    pairs: tuple[tuple[float, float], ...] = ()
    """(without, with) of each round, ns."""
    ratio: float = 0.0
    """Time with it over time without; 0: there is no round."""
    low: float = 0.0
    """Lower end of the interval of ``ratio`` at the 99 % level; 0: it has none."""
    high: float = 0.0
    """Upper end: 1 - high is the lower bound of the gain."""
    wall_ratio: float = 0.0
    """The same ratio of whole runs, from start to end."""


class TriedEdit(Struct, frozen=True, kw_only=True):
    """An edit, and what became of it."""

    code: str
    """Finding or rule that it belongs to."""
    title: str
    """What it does, as an imperative."""
    file: str
    line: int = 0
    kind: EditClass
    outcome: EditOutcome
    same: Sameness = ""
    why: str = ""
    """Why it is not in the patch, or not proved; "" if it is proved."""
    measure: Measure = "run"
    choosing: ProvenRounds = ProvenRounds()
    """The rounds that choose."""
    fresh: ProvenRounds = ProvenRounds()
    """The rounds that prove, made after it was chosen."""
    diff: str = ""


class FixQuestion(Struct, frozen=True, kw_only=True):
    """What only a person can decide."""

    code: str
    text: str
    file: str = ""
    line: int = 0
    allow: str = ""
    """The word of ``--allow`` that lets it be tried; "": no edit does it."""


class FixReport(Struct, frozen=True, kw_only=True):
    """The patch and how it came about."""

    schema: str = SCHEMA
    version: str
    """Version of stepscope."""
    command: tuple[str, ...]
    """The program's command line, secrets masked."""
    edits: tuple[TriedEdit, ...] = ()
    """All edits in the order in which they were tried."""
    questions: tuple[FixQuestion, ...] = ()
    patch: str = ""
    """Unified diff of all edits that are kept, or left unproven; "": none is."""
    folder: str = ""
    """Folder that the names of the patch begin in."""
    branch: str = ""
    """Branch that has the patch; "": none was asked for."""
    total: ProvenRounds = ProvenRounds()
    """The whole patch against the unchanged program."""
    measure: Measure = "run"
    """What ``total`` compares."""
    repeatable: bool | None = None
    """Whether unchanged runs log the same; null: it was not looked at."""
    compared: str = ""
    """What of the unchanged runs is compared, or why it cannot be."""
    unproven: str = ""
    """Why the patch is not proved; "" if it is, or if there is none."""
    proof: str = ""
    """Command that proves it; "" if it is proved."""
    problem: str = ""
    """Why the patch is not in the file or the branch that was asked for; "": it is."""
    stop: str = ""
    """Why no further edit was tried."""
    runs: int = 0
    """Number of runs of the program."""
    seconds: float = 0.0
    """Time that all took."""

    @property
    def kept(self) -> tuple[TriedEdit, ...]:
        """The edits of the patch."""
        return tuple(edit for edit in self.edits if edit.outcome in {"kept", "unproven"})
