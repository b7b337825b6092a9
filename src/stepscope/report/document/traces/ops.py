"""Ops: by the line or layer that made them, or each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from stepscope.report import words
from stepscope.report.blocks import Heading, Paragraph, Table, coded, columns
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where
from stepscope.tables.place import Place
from stepscope.tables.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.model.report.op_table import MakerTime, OpTable

SHOWN = 15
"""Rows in Markdown and on the page; report.json has all."""
IN_LINES = 3
"""Rows in the terminal."""
LEAST = 0.005
"""Smaller shares are omitted."""
NO_LAYER, NO_MAKER = "no layer", "no known line or layer"
HEAD = columns("Made by | Op time: | Share: | In gradients: | Runs: | Ops | Where")
MAX_LAYERS = 3
"""Maximum number of layers, or types of ops, that are named for one line."""
MAX_NAME = 80
"""Maximum characters of an op's name in a line: template kernels have hundreds."""


OP_HEAD = columns("Op | Type | Self time: | Share: | Runs: | Result | Gflop of the op: | Layer | Where | Device")
_GIGA = 1e9


class Row(NamedTuple):
    """Ops made by one line or layer, as text; columns as ``HEAD``."""

    maker: str
    time: str
    share: str
    gradients: str
    runs: str
    types: str
    where: str


def rows(table: OpTable, count: int) -> list[Row]:
    """The first ``count`` makers, the sum of the others, and ops without a known maker; they add up to all op time."""
    shown = table.makers[:count]
    rest = table.named_ratio - sum(maker.ratio for maker in shown)
    others = [] if rest < LEAST else [_sum(table, "other lines and layers", rest, "")]
    if table.makers and (unnamed := 1.0 - table.named_ratio) >= LEAST:
        others.append(_sum(table, NO_MAKER, unnamed, _types(table.unnamed_types)))
    return [*(_row(maker) for maker in shown), *others]


def _sum(table: OpTable, what: str, ratio: float, types: str) -> Row:
    return Row(what, format_ns(round(ratio * table.ns)), format_ratio(ratio), "", "", types, "")


def _types(types: Iterable[str]) -> str:
    return ", ".join(words.printable(name) for name in types)


def _row(maker: MakerTime) -> Row:
    layer = f"{words.printable(maker.layer)} ({words.printable(maker.layer_type)})" if maker.layer else ""
    place = Place(file=maker.file, line=maker.line, function=maker.function)
    where = words.place_text(place, short=True).removesuffix(" <module>") if maker.file else ""
    return Row(
        layer or NO_LAYER,
        format_ns(maker.ns),
        format_ratio(maker.ratio),
        format_ratio(maker.gradient_ratio) if maker.gradient_ratio else "",
        f"{maker.calls:,}",
        _types(maker.types),
        f"built at {where}" if maker.built else where,
    )


def summary(table: OpTable, file: str = "") -> str:
    """What the table covers; ``file``: of whose ops, if several were imported."""
    steps = f" in {words.plural(table.steps, 'traced step')}" if table.steps else " of the trace"
    steps += f" of {words.printable(file)}" if file else ""
    found = f"; {format_ratio(table.named_ratio)} attributed to lines and layers" if table.named_ratio else ""
    return f"{format_ns(table.ns)} of op time over all threads{steps}{found}"


def short(table: OpTable, count: int) -> list[str]:
    """One line for each of the first ``count`` rows: makers, or ops if no maker is known."""
    found = []
    if not table.makers:
        for op in table.ops[:count]:
            kind = f" ({words.printable(op.type)})" if op.type not in {"", op.name} else ""
            device = f" on {words.printable(op.device)}" if op.device else ""
            found.append(f"{format_ratio(op.ratio)} {_cut(short_name(op.name))}{kind}{device}")
    for row in line_rows(table, count) if table.makers else ():
        what = {NO_LAYER: row.types, NO_MAKER: f"{NO_MAKER} ({row.types})"}.get(row.maker, row.maker)
        gradients = f", including {row.gradients} in gradients" if row.gradients else ""
        found.append(f"{row.share} {what}{gradients}: {row.where}" if row.where else f"{row.share} {what}{gradients}")
    return found


def line_rows(table: OpTable, count: int) -> list[Row]:
    """As ``rows``, with all layers and ops of one source line in one row."""
    groups: dict[tuple[str, int], list[MakerTime]] = {}
    for number, maker in enumerate(table.makers):
        groups.setdefault((maker.file, maker.line) if maker.file else ("", -number), []).append(maker)
    lines = sorted((_of_line(group) for group in groups.values()), key=lambda maker: -maker.ratio)
    return rows(msgspec.structs.replace(table, makers=tuple(lines)), count)


def _of_line(makers: Sequence[MakerTime]) -> MakerTime:
    """One maker for all of a line: the costliest with the names of the others' layers."""
    if len(makers) == 1:
        return makers[0]
    names = list(dict.fromkeys(maker.layer for maker in makers if maker.layer))
    more = len(names) - MAX_LAYERS
    kinds = list(dict.fromkeys(maker.layer_type for maker in makers if maker.layer))
    return msgspec.structs.replace(
        makers[0],
        layer=", ".join(names[:MAX_LAYERS]) + (f" and {more} more" if more > 0 else ""),
        layer_type=", ".join(kinds[:MAX_LAYERS]),
        types=tuple(dict.fromkeys(name for maker in makers for name in maker.types))[:MAX_LAYERS],
        built=all(maker.built for maker in makers),
        calls=sum(maker.calls for maker in makers),
        ns=sum(maker.ns for maker in makers),
        ratio=sum(maker.ratio for maker in makers),
        gradient_ratio=sum(maker.gradient_ratio for maker in makers),
    )


def short_name(name: str) -> str:
    """An op's name as users know it, without the enclosing function call."""
    return words.printable(name.removeprefix("StatefulPartitionedCall/"))


def _cut(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}\u2026"


def op_rows(table: OpTable) -> list[tuple[str, ...]]:
    """The ops with the most self time."""
    return [
        (
            short_name(op.name),
            words.printable(op.type) if op.type != op.name else "",
            format_ns(op.ns),
            format_ratio(op.ratio),
            f"{op.calls:,}",
            words.printable(op.shape),
            f"{op.flops / _GIGA:,.3g}" if op.flops else "",
            f"{words.printable(op.layer)}{' (gradient)' if op.gradient else ''}".strip(),
            f"{words.printable(op.file)}:{op.line}" if op.file else "",
            words.printable(op.device),
        )
        for op in table.ops
    ]


def _lines(asked: Asked) -> Said:
    ops = asked.report.ops
    if ops is not None:
        said = summary(ops, words.analysed_file(asked.report))
        yield Lines(label="ops", texts=[said, *short(ops, IN_LINES)], where=Where.BELOW)


def _blocks(asked: Asked) -> Blocks:
    table = asked.report.ops
    if table is None:
        return
    yield Paragraph(f"{summary(table, words.analysed_file(asked.report))}.")
    if table.makers:
        yield Table(HEAD, coded(rows(table, SHOWN), 6))
    if table.makers and table.ops:
        yield Heading("Ops with the most self time", page=True)
    each = coded(op_rows(table)[:SHOWN], 0, 8)
    yield Table(OP_HEAD, each, page=bool(table.makers))


SECTION = Section(key="ops", title="Ops", lines=_lines, blocks=_blocks)
