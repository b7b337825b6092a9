"""Signatures of compiled programs are read in place; what is no program, or damaged, is left out."""

from __future__ import annotations

import pytest

from stepscope.readers.byte_source import ByteSource
from stepscope.readers.protobuf.codec import encode_bytes, encode_number, encode_packed
from stepscope.readers.xplane import hlo_signature
from stepscope.readers.xplane.messages import STAT_BYTES, STAT_INT, WireMetas, WirePlane
from stepscope.tables.optrace import Program


def _shape(kind: int, *dimensions: int, parts: tuple[bytes, ...] = ()) -> bytes:
    packed = encode_packed(3, dimensions) if dimensions else b""
    return encode_number(2, kind) + packed + b"".join(encode_bytes(4, part) for part in parts)


def _hlo(name: str, number: int, *shapes: bytes) -> bytes:
    signature = b"".join(encode_bytes(1, shape) for shape in shapes)
    module = encode_bytes(1, name.encode()) + encode_bytes(3, b"computations") + encode_bytes(4, signature)
    return encode_bytes(1, module + encode_number(5, number))


def _read(*stats: bytes) -> list[Program]:
    metas = WireMetas()
    content = b""
    for stat in stats:
        metas.stats[len(metas.stats)] = [(len(content), len(content) + len(stat))]
        content += stat
    return list(hlo_signature.programs(ByteSource(content), WirePlane(metas=metas)))


def test_shapes_stand_as_xla_prints_them() -> None:
    pair = _shape(13, parts=(_shape(11, 8, 4), _shape(1)))
    found = _read(encode_bytes(STAT_BYTES, _hlo("jit_f", 7, _shape(11, 128, 64), _shape(16), pair, _shape(99, 2))))
    assert found == [
        Program(name="jit_f", id=7, parameters=("f32[128,64]", "bf16[]", "(f32[8,4], pred[])", "type99[2]"))
    ]


@pytest.mark.parametrize("damaged", [b"\x0a\xff", b"\x0a\x05\x0a\x50x", b"\x00"])
def test_what_is_none_or_damaged_is_left_out_and_the_rest_is_read(damaged: bytes) -> None:
    good = encode_bytes(STAT_BYTES, _hlo("jit_g", 1))
    assert _read(encode_bytes(STAT_BYTES, damaged), encode_number(STAT_INT, 5), good) == [
        Program(name="jit_g", id=1, parameters=())
    ]


def test_tuples_without_end_come_to_one() -> None:
    shape = _shape(11, 2)
    for _ in range(100):
        shape = _shape(13, parts=(shape,))
    (found,) = _read(encode_bytes(STAT_BYTES, _hlo("jit_h", 1, shape)))
    assert found.parameters[0].count("(") == hlo_signature.MAX_DEPTH + 1
