"""Shapes in compiled programs (HLO), read in place.

Source: openxla/xla ``xla/xla_data.proto``: ShapeProto element_type = 2, dimensions = 3 (packed), tuple_shapes = 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.readers.protobuf.codec import BYTES, VARINT, signed
from stepscope.readers.protobuf.wire_fields import fields, varint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stepscope.readers.byte_source import ByteSource
    from stepscope.readers.xplane.messages import Span

_ELEMENT_TYPE, _DIMENSIONS, _TUPLE = 2, 3, 4
_TYPES = (
    *("invalid", "pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "tuple", "opaque"),
    *("c64", "bf16", "token", "c128", "f8e5m2", "f8e4m3fn", "s4", "u4"),
)
"""Names of xla_data.proto's ``PrimitiveType``, as XLA prints them."""
MAX_DEPTH = 8
"""Depth of nested tuples; a damaged file could nest without end."""


class Shape(Struct, frozen=True, kw_only=True):
    """A shape."""

    type: str = ""
    dimensions: tuple[int, ...] = ()
    parts: tuple[Shape, ...] = ()
    """Of a tuple."""

    @property
    def text(self) -> str:
        """``f32[128,64]``; for a tuple its parts in brackets."""
        if self.type == "tuple":
            return f"({', '.join(part.text for part in self.parts)})"
        return f"{self.type}[{','.join(map(str, self.dimensions))}]"

    @property
    def first(self) -> Shape:
        """It, or for a tuple its first part: the result of a call of a library, whose other part is scratch memory."""
        return self.parts[0].first if self.parts else self


def read(source: ByteSource, span: Span, depth: int = 0) -> Shape:
    """The shape of a message."""
    kind, dimensions, parts = "", [], []
    for number, wire, at, end in fields(source.view, *span):
        if (number, wire) == (_ELEMENT_TYPE, VARINT):
            kind = _TYPES[at] if at < len(_TYPES) else f"type{at}"
        elif (number, wire) == (_DIMENSIONS, VARINT):
            dimensions.append(signed(at))
        elif (number, wire) == (_DIMENSIONS, BYTES):
            dimensions += numbers(source, at, end)
        elif (number, wire) == (_TUPLE, BYTES) and depth < MAX_DEPTH:
            parts.append(read(source, (at, end), depth + 1))
    return Shape(type=kind, dimensions=tuple(dimensions), parts=tuple(parts))


def numbers(source: ByteSource, at: int, end: int) -> Iterator[int]:
    """Packed numbers."""
    while at < end:
        value, at = varint(source.view, at, end)
        yield signed(value)
