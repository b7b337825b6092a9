"""Compiled programs (HLO): name, number, the shapes of their arguments, and the ops that events name (``hlo_ops``).

Source: openxla/xla ``xla/service/hlo.proto`` and ``xla/xla_data.proto``. Field numbers used here::

    HloProto          hlo_module = 1
    HloModuleProto    name = 1, host_program_shape = 4, id = 5
    ProgramShapeProto parameters = 1 (ShapeProto)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.readers.protobuf.codec import BYTES, VARINT, signed
from stepscope.readers.protobuf.wire_fields import fields
from stepscope.readers.xplane import hlo_ops, hlo_shapes
from stepscope.readers.xplane.messages import STAT_BYTES
from stepscope.tables.errors import FormatError
from stepscope.tables.optrace import Program

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from stepscope.readers.byte_source import ByteSource
    from stepscope.readers.xplane.messages import Span, WirePlane

_MODULE = 1
_NAME, _SIGNATURE, _ID = 1, 4, 5
_PARAMETERS = (1, BYTES)
MAX_DEPTH = hlo_shapes.MAX_DEPTH


def programs(source: ByteSource, plane: WirePlane, ops: Collection[str] = ()) -> Iterator[Program]:
    """The programs of a metadata plane, with their ops of these names; what is not HLO, or damaged, is omitted."""
    for _, stats in sorted(plane.metas.stats.items()):
        for first, last in stats:
            for number, wire, at, end in fields(source.view, first, last):
                if (number, wire) == (STAT_BYTES, BYTES):
                    try:
                        yield from _program(source, (at, end), ops)
                    except FormatError:
                        continue


def _program(source: ByteSource, span: Span, ops: Collection[str]) -> Iterator[Program]:
    for number, wire, at, end in fields(source.view, *span):
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
            yield Program(name=name, id=identity, parameters=parameters, ops=hlo_ops.read(source, (at, end), ops))


def _signature(source: ByteSource, span: Span) -> tuple[str, ...]:
    found = fields(source.view, *span)
    shapes = (hlo_shapes.read(source, (at, end)) for number, wire, at, end in found if (number, wire) == _PARAMETERS)
    return tuple(shape.text for shape in shapes)
