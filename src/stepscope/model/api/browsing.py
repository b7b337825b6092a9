"""Answers of the REST interface for single pages: stacks, code, memory, two sessions. Additions only."""

from __future__ import annotations

import msgspec

from stepscope.model.api.rest_api import SessionBrief
from stepscope.model.report.compare import CompareReport
from stepscope.model.report.input_bound import InputBound
from stepscope.model.report.input_tree import InputTree
from stepscope.model.report.machine.memory_map import MemoryMap
from stepscope.model.report.report import StageShare
from stepscope.tables.findings import Finding


class StackKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of code."""

    kind: int
    """Kind as in frames."""
    name: str
    """Name of the kind, for programs."""
    text: str
    ratio: float
    """Share of the weight, by the innermost frame."""


class StackTree(msgspec.Struct, frozen=True, kw_only=True):
    """The stacks of one event as columns. A stack is its caller's stack and one more frame; callers come first."""

    event: str
    unit: str
    """Unit of weights: ns, bytes, samples, or the counted thing."""
    window: str
    """Part of the session that the tree covers."""
    samples: float
    weight: float
    """Sum of ``own``."""
    unresolved_ratio: float
    """Share of the weight that ends in a frame without a name."""
    health: tuple[str, ...]
    """Defects of the data, in sentences."""
    doubtful: bool
    """Flag: the defects are so large that the picture misleads without an explanation."""
    merged: str
    """Description of what was too small to be sent; "" for nothing."""
    threads: int
    """Number of threads and pools of threads that have samples."""
    waits: str
    """How much of the time the threads were on no CPU, in a sentence; "" where that is not known."""
    kinds: tuple[StackKind, ...]
    strings: tuple[str, ...]
    frames: tuple[tuple[int, int, int, int, int, int], ...]
    """Frames: function, file, line, module, kind, 1 if the function's name is known. Strings are numbers of
    ``strings``."""
    parent: tuple[int, ...]
    """Caller's stack of each stack; -1 for a root."""
    frame: tuple[int, ...]
    own: tuple[float, ...]
    """Weight of the samples that end in each stack."""


class InputFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding about the input."""

    number: int
    """Number of the finding, from 1, as listed by /findings."""
    finding: Finding


class InputShown(msgspec.Struct, frozen=True, kw_only=True):
    """The report's parts on the input."""

    tree: InputTree | None
    bound: InputBound | None
    shares: tuple[StageShare, ...]
    """The two pipeline stages that make input: raw-input and preprocessing."""
    findings: tuple[InputFinding, ...]


class CodeLine(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a line."""

    line: int
    ratio: float = 0.0
    """Share of the steady wall time that the line is known to cost; 0: below 0.5 %."""
    op_ratio: float = 0.0
    """Share of the captured op time in ops that the line made; 0: no op trace, or below 0.5 %."""
    findings: tuple[int, ...] = ()
    """Numbers of the findings at the line, from 1, as listed by /findings."""


class CodeFile(msgspec.Struct, frozen=True, kw_only=True):
    """One of the user's files."""

    file: str
    """Path as in places."""
    lines: int
    """Number of lines of the stored copy; 0: the session holds none."""
    ratio: float
    """Sum of the lines' ratios."""
    op_ratio: float
    known: tuple[CodeLine, ...]
    """Lines with known facts, by number."""


class CodeFileList(msgspec.Struct, frozen=True, kw_only=True):
    """The user's files, costliest first."""

    items: tuple[CodeFile, ...]


class MemoryShown(msgspec.Struct, frozen=True, kw_only=True):
    """The address space of a process, with explanations."""

    map: MemoryMap
    huge_pages: tuple[str, ...]
    layout: tuple[str, ...]
    faults: str
    growth: str
    """Description of the growth; empty if there was one look."""
    kernel_work: str
    sizes: tuple[str, ...]
    """Range of each class of sizes."""
    hardware: tuple[str, ...] = ()
    """Hardware counters; empty if there are none."""
    translation: tuple[str, ...] = ()
    """The most that TLB misses can cost; empty if nothing is known of it."""
    page_sizes: tuple[str, ...] = ()
    free_memory: tuple[str, ...] = ()


class MemoryList(msgspec.Struct, frozen=True, kw_only=True):
    """Processes whose memory was looked at, the one with the most memory first."""

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
    """Differences in the stacks of one event of two sessions."""

    event: str
    unit: str
    verdict: str
    about: tuple[str, ...]
    """Basis of the comparison, in sentences."""
    changes: tuple[StackChange, ...]
    """Changes, largest change of self weight first, at most 100."""
    more: int
    """Number of changes omitted."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two sessions, each with its own summary, stages and findings."""

    before: SessionBrief
    after: SessionBrief
    events: tuple[str, ...]
    """Events whose stacks are in both."""
    stacks: StackComparison | None
    """Comparison of stacks; null if they share no stacks of one event, or ``problem`` says why they are not
    compared."""
    numbers: CompareReport | None = None
    """What `stepscope compare` says of the two; null if they cannot be compared, ``no_numbers`` says why."""
    verdict: str = ""
    """Its verdict, in a sentence."""
    no_numbers: str = ""
    problem: str = ""
