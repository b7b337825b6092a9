"""The result of ``stepscope fix`` as text: a table, questions, and the patch, which ``git apply`` finds in it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from stepscope.tables.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepscope.model.report.fix import FixQuestion, FixReport, ProvenRounds, TriedEdit
    from stepscope.model.report.whatif import Measure

SAME = {
    "bit-equal": "all that it logs is equal to the bit",
    "within": "every number that it logs is within 1e-5",
    "by-rule": "equal by the rule of the edit: its own runs differ",
    "allowed": "other results, as --allow lets it",
}
OUTCOME = {
    "no-gain": "no gain",
    "not-sure": "no sure gain",
    "other-results": "computes something else",
    "not-repeatable": "not comparable",
    "failed": "fails",
    "no-time": "not proved",
    "unproven": "not proved",
}


def render(report: FixReport) -> str:
    """All of it."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: FixReport) -> Iterator[str]:
    yield f"stepscope fix: {shlex.join(report.command)}"
    runs = f"{report.runs} run{'' if report.runs == 1 else 's'} in {report.seconds:.0f} s"
    compared = f"compared: {report.compared}; " if report.repeatable is not None else ""
    yield f"{runs}; {compared}{report.stop}"
    kept = [one for one in report.edits if one.outcome == "kept"]
    if kept:
        yield f"\nproved ({len(kept)}):"
        yield f"  before: {_time(kept[0].fresh, kept[0].measure, side=0)}"
        for number, one in enumerate(kept, 1):
            yield from _kept(number, one)
        if len(kept) > 1 and report.total.ratio:
            yield f"  all together: {_change(report.total, report.measure)}"
    if report.unproven:
        yield f"\nleft unproven: {report.unproven}"
        yield from (f"  {_place(one)}: {one.title}" for one in report.edits if one.outcome == "unproven")
        if report.proof:
            yield f"  to prove it: {report.proof}"
    yield from _block("tried, and not in the patch:", map(_refused, _others(report)))
    yield from _block("only you can decide:", map(_asked, report.questions))
    if not report.patch:
        yield "\nno patch: nothing was kept"
        return
    if report.problem:
        yield f"\nnot written: {report.problem}"
    branch = f"; branch {report.branch} has it" if report.branch else ""
    yield f"\nthe patch, from {report.folder} on{branch}:"
    yield report.patch.rstrip("\n")


def _block(head: str, lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    if found:
        yield f"\n{head}"
        yield from found


def _others(report: FixReport) -> list[TriedEdit]:
    return [one for one in report.edits if one.outcome not in {"kept", "unproven"}]


def _kept(number: int, one: TriedEdit) -> Iterator[str]:
    yield f"  {number}. {_place(one)}: {one.title} [{one.code}]"
    yield f"     {_change(one.fresh, one.measure)}; {SAME.get(one.same, '')}"


def _asked(one: FixQuestion) -> str:
    place = f" {one.file}:{one.line}" if one.file else ""
    return f"  {one.code}{place}: {one.text}{f' (--allow {one.allow})' if one.allow else ''}"


def _refused(one: TriedEdit) -> str:
    return f"  {_place(one)}: {one.title} [{one.code}]: {OUTCOME[one.outcome]}: {one.why}"


def _change(found: ProvenRounds, measure: Measure) -> str:
    sure = f" ({1 - found.high:.0%} to {1 - found.low:.0%} at the 99 % level)" if found.low else ""
    before, after = (_time(found, measure, side=side) for side in (0, 1))
    return f"{before} -> {after}: {1 - found.ratio:.0%} less{sure}, {len(found.pairs)} fresh rounds"


def _time(found: ProvenRounds, measure: Measure, *, side: int) -> str:
    if not found.pairs:
        return "not measured"
    times = sorted(pair[side] for pair in found.pairs)
    return f"{format_ns(round(times[len(times) // 2]))} a {measure}"


def _place(one: TriedEdit) -> str:
    return f"{one.file}:{one.line}" if one.line else one.file


def table(rows: Iterable[tuple[str, str, str]]) -> str:
    """The table of ``--list``: code, name, and the edit or why there is none."""
    many = list(rows)
    wide = max(len(name) for _, name, _ in many)
    return "".join(f"{one}  {name:<{wide}}  {text}\n" for one, name, text in many)
