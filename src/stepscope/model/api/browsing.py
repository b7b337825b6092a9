"""What the REST interface answers for single pages: stacks, code, memory, two sessions. Additions only."""

from __future__ import annotations

import msgspec

from stepscope.model.api.rest_api import SessionBrief
from stepscope.model.report.memory_map import MemoryMap


class StackKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of code."""

    kind: int
    """As frames have it."""
    name: str
    """For programs."""
    text: str
    ratio: float
    """Of the weight, by the innermost frame."""


class StackTree(msgspec.Struct, frozen=True, kw_only=True):
    """The stacks of one event as columns. A stack is its caller's stack and one more frame; callers stand first."""

    event: str
    unit: str
    """Of weights: ns, bytes, samples, or what is counted."""
    window: str
    """What part of the session it is."""
    samples: float
    weight: float
    """The sum of ``own``."""
    unresolved_ratio: float
    """Share of the weight that ends in a frame without a name."""
    health: tuple[str, ...]
    """What is not whole, in sentences."""
    doubtful: bool
    """So much of it that the picture misleads without a word about it."""
    merged: str
    """What was too small to be sent; "" for nothing."""
    kinds: tuple[StackKind, ...]
    strings: tuple[str, ...]
    frames: tuple[tuple[int, int, int, int, int, int], ...]
    """Function, file, line, module, kind, 1 where the function's name is known. Texts are numbers of ``strings``."""
    parent: tuple[int, ...]
    """Of each stack its caller's; -1 for a root."""
    frame: tuple[int, ...]
    own: tuple[float, ...]
    """Weight of the samples that end there."""


class CodeLine(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a line."""

    line: int
    ratio: float = 0.0
    """Share of the steady wall time that the line is known to cost; 0: below 0.5 %."""
    op_ratio: float = 0.0
    """Share of the captured op time in ops that the line made; 0: no op trace, or below 0.5 %."""
    findings: tuple[int, ...] = ()
    """Numbers of the findings that stand there, from 1, as /findings lists them."""


class CodeFile(msgspec.Struct, frozen=True, kw_only=True):
    """One of the user's files."""

    file: str
    """As places name it."""
    lines: int
    """Of the stored copy; 0: the session holds none."""
    ratio: float
    """The sum of its lines."""
    op_ratio: float
    known: tuple[CodeLine, ...]
    """Lines of which something is known, by number."""


class CodeFileList(msgspec.Struct, frozen=True, kw_only=True):
    """The user's files, the costliest first."""

    items: tuple[CodeFile, ...]


class MemoryShown(msgspec.Struct, frozen=True, kw_only=True):
    """The address space of a process, and what there is to say of it."""

    map: MemoryMap
    huge_pages: tuple[str, ...]
    layout: tuple[str, ...]
    faults: str
    growth: str
    """Empty: there was one look."""
    kernel_work: str
    sizes: tuple[str, ...]
    """Of each class of sizes its range."""


class MemoryList(msgspec.Struct, frozen=True, kw_only=True):
    """Processes whose memory was looked at, the one with the most first."""

    items: tuple[MemoryShown, ...]


class StackChange(msgspec.Struct, frozen=True, kw_only=True):
    """A function whose weight differs beyond noise. Weights of the first are scaled to the work of the second."""

    function: str
    file: str
    module: str
    own_before: float
    own_after: float
    own_text: str
    total_before: float
    total_after: float
    total_text: str


class StackComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What differs in the stacks of one event of two sessions."""

    event: str
    unit: str
    verdict: str
    about: tuple[str, ...]
    """On what it rests, in sentences."""
    changes: tuple[StackChange, ...]
    """The largest change of self weight first, at most 100."""
    more: int
    """Changes that are left out."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two sessions. Their summaries, stages and findings are those of each."""

    before: SessionBrief
    after: SessionBrief
    events: tuple[str, ...]
    """Events whose stacks both hold."""
    stacks: StackComparison | None
    """Null: they hold no stacks of one event, or ``problem`` says why they are not compared."""
    problem: str = ""
