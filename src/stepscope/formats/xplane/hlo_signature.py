"""Signatures of compiled programs (HLO): name, number, and the shapes of their arguments.

Only the data around a module's instructions is read, in place; the instructions are skipped.

Source: openxla/xla ``xla/service/hlo.proto`` and ``xla/xla_data.proto``. Field numbers used here::

    HloProto          hlo_module = 1
    HloModuleProto    name = 1, host_program_shape = 4, id = 5
    ProgramShapeProto parameters = 1 (ShapeProto)
    ShapeProto        element_type = 2, dimensions = 3 (packed int64), tuple_shapes = 4
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.errors import FormatError
from stepscope.formats.protobuf.codec import BYTES, VARINT, signed
from stepscope.formats.protobuf.wire_fields import fields, varint
from stepscope.formats.xplane.messages import STAT_BYTES
from stepscope.model.session.optrace import Program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.formats.byte_source import ByteSource
    from stepscope.formats.xplane.messages import Span, WirePlane

_MODULE = 1
_NAME, _SIGNATURE, _ID = 1, 4, 5
_PARAMETERS = 1
_ELEMENT_TYPE, _DIMENSIONS, _TUPLE = 2, 3, 4
_TYPES = (
    *("invalid", "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "tuple", "opaque"),
    *("c64", "bf16", "token", "c128", "f8e5m2", "f8e4m3fn", "s4", "u4"),
)
"""Names of xla_data.proto's ``PrimitiveType``, as XLA prints them."""
MAX_DEPTH = 8
"""Depth of nested tuples; a damaged file could nest without end."""


def programs(source: ByteSource, plane: WirePlane) -> Iterator[Program]:
    """The programs of a metadata plane; anything that is not HLO, or damaged, is omitted."""
    for _, stats in sorted(plane.metas.stats.items()):
        for first, last in stats:
            for number, wire, at, end in fields(source.view, first, last):
                if (number, wire) == (STAT_BYTES, BYTES):
                    try:
                        yield from _program(source, at, end)
                    except FormatError:
                        continue


def _program(source: ByteSource, first: int, last: int) -> Iterator[Program]:
    for number, wire, at, end in fields(source.view, first, last):
        if (number, wire) != (_MODULE, BYTES):
            continue
        name, identity = "", 0
        parameters: tuple[str, ...] = ()
        for part, kind, a, b in fields(source.view, at, end):
            if (part, kind) == (_NAME, BYTES):
                name = source.text(a, b)
            elif (part, kind) == (_ID, VARINT):
                identity = signed(a)
            elif (part, kind) == (_SIGNATURE, BYTES):
                parameters = _signature(source, (a, b))
        if name:
            yield Program(name=name, id=identity, parameters=parameters)


def _signature(source: ByteSource, span: Span) -> tuple[str, ...]:
    found = fields(source.view, *span)
    return tuple(_shape(source, (at, end)) for number, wire, at, end in found if (number, wire) == (_PARAMETERS, BYTES))


def _shape(source: ByteSource, span: Span, depth: int = 0) -> str:
    """The shape ``f32[128,64]``; for a tuple its parts in brackets."""
    kind, dimensions, parts = "", [], []
    for number, wire, at, end in fields(source.view, *span):
        if (number, wire) == (_ELEMENT_TYPE, VARINT):
            kind = _TYPES[at] if at < len(_TYPES) else f"type{at}"
        elif (number, wire) == (_DIMENSIONS, VARINT):
            dimensions.append(signed(at))
        elif (number, wire) == (_DIMENSIONS, BYTES):
            dimensions += _numbers(source, at, end)
        elif (number, wire) == (_TUPLE, BYTES) and depth < MAX_DEPTH:
            parts.append(_shape(source, (at, end), depth + 1))
    if kind == "tuple":
        return f"({', '.join(parts)})"
    return f"{kind}[{','.join(map(str, dimensions))}]"


def _numbers(source: ByteSource, at: int, end: int) -> Iterator[int]:
    while at < end:
        value, at = varint(source.view, at, end)
        yield signed(value)
