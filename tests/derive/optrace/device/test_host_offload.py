"""What the text of an HLO copy says of the two memories and of the bytes."""

from __future__ import annotations

import pytest

from stepscope.derive.optrace.device import device_work, host_offload
from stepscope.derive.optrace.device.host_offload import Offload

HERE, THERE = "bf16[8,128]{1,0:T(8,128)}", "bf16[8,128]{1,0:T(8,128)S(5)}"
TOKEN = "u32[]{:S(2)}"


def start(into: str, out_of: str) -> str:
    """The op that begins a copy."""
    return f"%copy-start.7 = ({into}, {out_of}, {TOKEN}) copy-start({out_of} %param.1)"


def done(into: str, out_of: str) -> str:
    """The op that waits for it."""
    return f"%copy-done.7 = {into} copy-done(({into}, {out_of}, {TOKEN}) %copy-start.7)"


@pytest.mark.parametrize(
    ("text", "way", "waits"),
    [
        (start(HERE, THERE), device_work.TO_DEVICE, False),
        (done(HERE, THERE), device_work.TO_DEVICE, True),
        (start(THERE, HERE), device_work.FROM_DEVICE, False),
        (done(THERE, HERE), device_work.FROM_DEVICE, True),
    ],
)
def test_both_ways(text: str, way: str, *, waits: bool) -> None:
    """The result lies where its layout says; 8 x 128 numbers of 16 bits are 2,048 bytes."""
    assert host_offload.of_text(text) == Offload(way=way, bytes=2048, array="bf16[8,128]", waits=waits)


@pytest.mark.parametrize(
    "text",
    [
        done(HERE, HERE),
        done(THERE, THERE),
        done("f32[64]{0:T(256)S(1)}", "f32[64]{0:T(256)}"),
        f"%copy.3 = {HERE} copy({THERE} %param.1)",
        "%fusion.1 = f32[4]{0} fusion(f32[4]{0:S(5)} %param.1), kind=kLoop",
        "copy-done.7",
        "MemcpyH2D",
    ],
)
def test_what_is_no_copy_between_device_and_host(text: str) -> None:
    """Within a memory, into the fast memory of the core, another op, a name without its text."""
    assert host_offload.of_text(text) is None


def test_bits_of_types() -> None:
    """Of eight bits each, and of four."""
    for kind, size in (("pred", 64), ("f8e4m3fn", 64), ("s4", 32), ("f64", 512)):
        copied = host_offload.of_text(done(f"{kind}[64]{{0}}", f"{kind}[64]{{0:S(5)}}"))
        assert copied is not None
        assert (copied.bytes, copied.array) == (size, f"{kind}[64]")
