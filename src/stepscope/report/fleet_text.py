"""Answers about many sessions for a terminal. Texts of sessions are untrusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from stepscope.model.api.fleet import FleetGoodput
from stepscope.report import fleet_changes_text
from stepscope.report.words import printable
from stepscope.tables.units import format_number_of, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepscope.model.api.fleet import FleetAnswer, FleetCost, FleetJob, PartsRead

_WIDEST = 60
"""Cells of a column of text."""
MINUTE = 60
"""Seconds and minutes from which the next unit is used."""


def render(answer: FleetAnswer) -> str:
    """A table, and what it rests on."""
    tables = {
        "jobs": _job_table,
        "top": _cost_table,
        "changes": fleet_changes_text.lines,
        "goodput": _goodput_table,
    }
    lines = list(tables[answer.question](answer))
    return "\n".join([*lines, *parts_lines(answer.parts, answer.filters)]) + "\n"


def parts_lines(read: PartsRead, filters: dict[str, str]) -> Iterator[str]:
    """What an answer rests on, in a line or a few."""
    kept = "".join(f", {name} {printable(value)}" for name, value in sorted(filters.items()))
    others = f"; {format_number_of(str(read.others), 'further parts')} of them not read" if read.others else ""
    yield f"of {format_number_of(str(read.sessions), 'sessions')}{kept}{others}"
    if read.newer:
        yield f"{format_number_of(str(read.newer), 'parts')} by a newer stepscope: what only it knows is not read"
    if read.damaged:
        named = ", ".join(printable(name) for name in read.damaged[:3])
        more = f" and {len(read.damaged) - 3} more" if len(read.damaged) > 3 else ""  # noqa: PLR2004 - three are named
        yield f"left out, because they are not what was sent: {named}{more}; send them again: stepscope fleet add"


def _job_table(answer: FleetAnswer) -> Iterator[str]:
    rows = [_job_cells(job, answer) for job in answer.jobs]
    head = (
        "started",
        "user",
        "project",
        "program",
        "host",
        "wall",
        "CPU",
        "device",
        *_money_head(answer),
        "lost",
        "end",
    )
    yield from _table(head, rows, words=5)


def _job_cells(job: FleetJob, answer: FleetAnswer) -> tuple[str, ...]:
    end = job.end if job.exit_code is None else f"code {job.exit_code}"
    attempt = ", again" if job.restarts else ""
    return (
        job.started,
        *(printable(text) or "-" for text in (job.user, job.project, job.program, job.host)),
        _hours(job.wall_hours),
        _hours(job.cpu_hours),
        _hours(job.device_hours),
        *_money(job.money, answer),
        format_ratio(job.lost_hours / job.wall_hours) if job.wall_hours else "-",
        f"{end}{attempt}",
    )


def _cost_table(answer: FleetAnswer) -> Iterator[str]:
    head = [answer.by or "", "jobs", "wall"]
    if answer.by == "finding":
        head += ["at least", "at most"]
    if answer.by == "line":
        head += ["threads", "itself"]
    if answer.by != "finding":
        head += ["CPU"]
    head += ["device", *_money_head(answer)]
    if answer.by not in {"line", "version"}:
        head += ["lost" if answer.by != "finding" else "on top"]
    yield from _table(head, [_cost_cells(cost, answer) for cost in answer.costs], words=1)


def _cost_cells(cost: FleetCost, answer: FleetAnswer) -> tuple[str, ...]:
    cells = [_name(cost), f"{cost.jobs:,}", _hours(cost.wall_hours)]
    if answer.by == "finding":
        cells += [_hours(cost.wall_low), _hours(cost.wall_high)]
    if answer.by == "line":
        cells += [_hours(cost.thread_hours), _hours(cost.self_hours)]
    if answer.by != "finding":
        cells += [_hours(cost.cpu_hours)]
    cells += [_hours(cost.device_hours), *_money(cost.money, answer)]
    if answer.by not in {"line", "version"}:
        cells += [_hours(cost.lost_hours)]
    return tuple(cells)


_GOODPUT = tuple(name for name in FleetGoodput.__struct_fields__ if name.endswith("_hours") and name != "held_hours")
"""Fields of what the held time went into."""


def _goodput_table(answer: FleetAnswer) -> Iterator[str]:
    head = ("started", "user", "job", "attempts", "failed", "held", *(name.removesuffix("_hours") for name in _GOODPUT))
    yield from _table(head, [_goodput_cells(job) for job in answer.goodput], words=3)
    unknown = sum(job.loss_unknown for job in answer.goodput[:1])
    if unknown:
        yield f"failed attempts whose saves are not known: {unknown:,} (what they lost counts as steps)"


def _goodput_cells(job: FleetGoodput) -> tuple[str, ...]:
    hours: list[float] = [getattr(job, name) for name in _GOODPUT]
    return (
        job.started,
        printable(job.user) or "-",
        printable(f"{job.project} {job.program}".strip()) if job.session else "all jobs",
        f"{job.attempts:,}",
        f"{job.failed:,}",
        _hours(job.held_hours),
        *(format_ratio(one / job.held_hours) if job.held_hours else "-" for one in hours),
    )


def _name(cost: FleetCost) -> str:
    if cost.file:
        where = f"{cost.project}: " if cost.project else ""
        return printable(f"{where}{cost.file}:{cost.line} {cost.function}")
    return printable(f"{cost.name} {cost.words}".strip()) or "not known"


def _money_head(answer: FleetAnswer) -> list[str]:
    return [printable(answer.currency)] if answer.currency else []


def _money(value: float | None, answer: FleetAnswer) -> list[str]:
    return [f"{value or 0.0:,.2f}"] if answer.currency else []


def _hours(value: float | None) -> str:
    """``42 s``, ``7.5 min``, ``1.25 h``, with three digits; "-" if it is not known."""
    if value is None:
        return "-"
    number, unit = next(((value * n, u) for n, u in ((3600, "s"), (60, "min")) if value * n < MINUTE), (value, "h"))
    return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"  # noqa: PLR2004 - three digits


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, words: int) -> Iterator[str]:
    """Columns as wide as their cells: the first ``words`` of text, the others of numbers."""
    wide = [min(_WIDEST, max(map(cell_len, column))) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = []
        for at, (text, width) in enumerate(zip(row, wide, strict=True)):
            kept = text if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"
            pad = " " * (width - cell_len(kept))
            cells.append(kept + pad if at < words else pad + kept)
        yield "  ".join(cells).rstrip()
