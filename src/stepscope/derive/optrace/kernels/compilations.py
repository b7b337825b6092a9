"""Compilations during the steps: which program, in which step, how long, and what changed since the previous one.

XLA compiles a program again for every new set of shapes. Steps before the compilation ran one program of a name, those
after it run another: the difference of their signatures says what changed. JAX with a compilation cache traces and
writes the program all the same, and loads it instead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.optrace.host.activity import nearest
from stepscope.readers.op_names import CALLS_JITTED, LOWERS
from stepscope.tables.optrace import Category, PlaneKind
from stepscope.tables.optrace_stats import StatName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stepscope.derive.optrace.host.activity import Domain
    from stepscope.derive.optrace.steps.step_periods import Periods
    from stepscope.tables.optrace import I32, OpTrace, Program
    from stepscope.tables.records import I64, Bool

_NAMES = ("name", "module", StatName.HLO_MODULE)
"""Stats of a compiler's events that hold the program's name."""


class Change(Struct, frozen=True, kw_only=True):
    """A parameter of a program whose shape has changed."""

    parameter: int
    before: str
    now: str


class Compilation(Struct, frozen=True, kw_only=True):
    """One program compiled within a step."""

    step: int
    """Position among the periods."""
    program: str
    """Name of the program; "" if the compiler's events do not say."""
    start_ns: int
    dur_ns: int
    again: bool
    """Whether a program of this name had run, or been compiled, earlier in the trace."""
    changes: tuple[Change, ...]
    """Differences from the version that ran before; empty if signatures are unknown or equal."""
    cached: bool = False
    """Whether the compiler did not run: the program came from a cache, and the time is that of its first call."""


class Compiles(Struct, frozen=True, kw_only=True):
    """All compilations within the steps, and their cost."""

    found: tuple[Compilation, ...]
    steps: tuple[int, ...]
    """Positions of the steps with a compilation."""
    usual_ns: float
    """Median of the other steps; of all steps minus their compilations if each has one."""
    extra_ns: float
    """Total time of the steps with a compilation beyond the usual: compiling, and tracing before it."""


def build(trace: OpTrace, domain: Domain, periods: Periods) -> Compiles:
    """The compilations within the periods."""
    events = trace.events
    compiling = domain.host & (trace.categories() == Category.COMPILE) & ~domain.of_input
    if periods.line >= 0 and trace.planes[periods.plane].kind is PlaneKind.HOST:
        compiling &= events.line == periods.line  # parts on other threads lie within
    rows = np.flatnonzero(compiling)
    outer = rows[nearest(domain.parent, compiling, rows) < 0]
    outer, cached = _loaded(trace, domain, outer)
    step = np.searchsorted(periods.start_ns, events.start_ns[outer], side="right") - 1
    within = (step >= 0) & (events.start_ns[outer] < periods.end_ns[np.maximum(step, 0)])
    outer, step, cached = outer[within], step[within], cached[within]
    runs = _runs(trace)
    names = _program_names(trace, domain, outer[~cached])
    names |= {row: _called(trace, row, runs) for row in outer[cached].tolist()}
    first: dict[str, int] = {}
    for row in outer.tolist():
        first.setdefault(names[row], row)
    found = tuple(
        Compilation(
            step=int(at),
            program=names[row],
            start_ns=int(events.start_ns[row]),
            dur_ns=int(events.dur_ns[row]),
            again=(names[row] != "" and first[names[row]] != row)
            or any(begun < events.start_ns[row] for begun, _ in runs.get(names[row], ())),
            changes=_changes(trace, names[row], runs.get(names[row], ()), int(events.start_ns[row])),
            cached=loaded,
        )
        for row, at, loaded in zip(outer.tolist(), step.tolist(), cached.tolist(), strict=True)
    )
    steps = tuple(sorted({c.step for c in found}))
    others = np.delete(periods.dur_ns, list(steps))
    if not len(others):
        call = _outermost(domain.parent, _jitted(trace), outer)
        spender, one = np.unique(np.where(call >= 0, call, outer), return_index=True)
        spent = np.bincount(step[one], weights=events.dur_ns[spender], minlength=len(periods))
        others = periods.dur_ns - spent.astype(np.int64)
    usual = float(np.median(others)) if len(others) else 0.0
    extra = sum(max(0.0, float(periods.dur_ns[i]) - usual) for i in steps)
    return Compiles(found=found, steps=steps, usual_ns=usual, extra_ns=extra)


def _loaded(trace: OpTrace, domain: Domain, outer: I64) -> tuple[I64, Bool]:
    """Compilations by row, rising, and which are calls of a function whose program was written, then loaded."""
    lowers = np.isin(trace.events.meta[outer], trace.metas_named(LOWERS))
    if not lowers.any():
        return outer, lowers
    jitted = _jitted(trace)
    calls, compiled = (_outermost(domain.parent, jitted, outer[which]) for which in (lowers, ~lowers))
    calls = np.setdiff1d(calls[calls >= 0], compiled)
    found = np.sort(np.concatenate([outer[~lowers], calls]))
    return found, np.isin(found, calls)


def _jitted(trace: OpTrace) -> Bool:
    """Which events are calls of functions that JAX compiles, with the tracing and compiling in them."""
    metas = np.array([trace.strings[i].startswith(CALLS_JITTED) for i in trace.metas.name.tolist()], np.bool_)
    found: Bool = metas[trace.events.meta]
    return found


def _outermost(parent: I32, wanted: Bool, rows: I64) -> I64:
    """The outermost event of some kinds around each of some events; -1 for none."""
    found = np.full(len(rows), -1, np.int64)
    at = rows
    while (at >= 0).any():
        found = np.where((at >= 0) & wanted[at], at, found)
        at = np.where(at >= 0, parent[at], -1)
    return found


def _called(trace: OpTrace, row: int, runs: Mapping[str, object]) -> str:
    """Name of the program of a call: that of its function, which JAX writes as a word."""
    text = trace.strings[int(trace.metas.name[trace.events.meta[row]])]
    function = _word(text.removeprefix(CALLS_JITTED).removesuffix(")"))
    return next((name for name in runs if _word(name.removeprefix("jit_")) == function), "")


def _word(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_")


def _program_names(trace: OpTrace, domain: Domain, outer: I64) -> dict[int, str]:
    """Name of the program made by each compilation: the first that an event in it carries.

    An event of another thread is in it by its time: XLA compiles on a pool while the step's thread waits.
    """
    found = dict.fromkeys(outer.tolist(), "")
    start, end = trace.events.start_ns, trace.events.end_ns
    for stat in _NAMES:
        codes, texts = trace.texts(stat)
        for row in np.flatnonzero((codes >= 0) & domain.host & (trace.categories() == Category.COMPILE)).tolist():
            at = row
            while at >= 0 and at not in found:
                at = int(domain.parent[at])
            if at < 0:
                around = outer[(start[outer] <= start[row]) & (end[row] <= end[outer])]
                at = int(around[0]) if len(around) == 1 else -1
            if at >= 0 and not found[at]:
                found[at] = texts[int(codes[row])]
    return found


def _runs(trace: OpTrace) -> dict[str, list[tuple[int, int]]]:
    """Versions of each program that ran, as (first start, id), by start; -1 if events have no id, as in JSON."""
    modules, texts = trace.texts(StatName.HLO_MODULE)
    ids = trace.ints(StatName.PROGRAM_ID)
    rows = np.flatnonzero(modules >= 0)
    if not len(rows):
        return {}
    keys = np.stack([modules[rows].astype(np.int64), ids[rows]], axis=1)
    order = np.argsort(trace.events.start_ns[rows], kind="stable")
    _, first = np.unique(keys[order], axis=0, return_index=True)
    found: dict[str, list[tuple[int, int]]] = {}
    for i in np.sort(first).tolist():
        row = rows[order[i]]
        found.setdefault(texts[int(modules[row])], []).append((int(trace.events.start_ns[row]), int(ids[row])))
    return found


def _changes(trace: OpTrace, name: str, runs: list[tuple[int, int]] | tuple[()], at: int) -> tuple[Change, ...]:
    """Differences between the version that last began to run before ``at`` and the first one after it."""
    known = _versions(trace, name, {number for _, number in runs})
    before = [known[number] for begun, number in runs if begun < at and number in known]
    after = [known[number] for begun, number in runs if begun >= at and number in known]
    if not before or not after or len(before[-1].parameters) != len(after[0].parameters):
        return ()
    pairs = zip(before[-1].parameters, after[0].parameters, strict=True)
    return tuple(Change(parameter=i, before=a, now=b) for i, (a, b) in enumerate(pairs) if a != b)


def _versions(trace: OpTrace, name: str, ran: set[int]) -> dict[int, Program]:
    """Versions of a program by the ids that its runs have. Those of JAX's compilation cache (0.10) run under other ids
    than they are described with, which rise alike.
    """
    known = {program.id: program for program in trace.programs if program.name == name}
    if known.keys() & ran or len(known) != len(ran):
        return known
    return dict(zip(sorted(ran), (known[number] for number in sorted(known)), strict=True))
