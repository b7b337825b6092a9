"""Stacks are walked to their end, and only those that come to one count as whole."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import pytest

from stepscope.native.formats import unwind
from stepscope.native.formats.call_frames import Rule, UnwindRules
from stepscope.native.formats.unwind import Code

BASE = 0x7000
IP, SP, BP, BX = 16, 7, 6, 3
PLAIN = UnwindRules(cfa=Rule("register", SP, 8), saved=((IP, -8),), others=(), return_register=IP)
"""A leaf that has pushed nothing."""
FRAMED = UnwindRules(cfa=Rule("register", BP, 16), saved=((IP, -8), (BP, -16)), others=(), return_register=IP)
BEGIN = UnwindRules(cfa=Rule("register", SP, 8), saved=(), others=((IP, Rule("undefined")),), return_register=IP)
LEAF, MIDDLE, OUTER, START, KERNEL_CODE = 0x100, 0x200, 0x300, 0x400, 0x900


class Space:
    """Functions of 64 bytes; ``calls``: addresses behind indirect calls."""

    def __init__(self, rows: Mapping[int, UnwindRules | None], calls: tuple[int, ...] = ()) -> None:
        self.rows = rows
        self.calls = calls

    def code(self, address: int) -> Code | None:
        start = address // 64 * 64
        if start == KERNEL_CODE // 64 * 64:
            return Code(generated=True, row=None)
        return Code(generated=False, row=self.rows[start]) if start in self.rows else None

    def called_from(self, address: int) -> bool:
        return address in self.calls


def stack(*words: int) -> memoryview:
    return memoryview(struct.pack(f"<{len(words)}Q", *words))


SPACE = Space({LEAF: PLAIN, MIDDLE: FRAMED, OUTER: PLAIN, START: BEGIN})


def test_a_whole_stack() -> None:
    """Leaf first, return addresses less one, up to where nothing calls."""
    bp = BASE + 16
    found = unwind.walk(
        SPACE, {IP: LEAF + 8, SP: BASE, BP: bp}, stack(MIDDLE + 5, 0xDEAD, 0x1234, OUTER + 9, START + 3, 0)
    )
    assert found.whole
    assert found.addresses == (LEAF + 8, MIDDLE + 4, OUTER + 8, START + 2)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({LEAF: PLAIN, START: BEGIN}, (MIDDLE + 5, START + 3)),
        ({LEAF: PLAIN, MIDDLE: None}, (MIDDLE + 5, START + 3)),
        ({LEAF: PLAIN, MIDDLE: PLAIN}, (MIDDLE + 5,)),
    ],
    ids=["no-code", "no-row", "stack-ends"],
)
def test_what_does_not_come_to_its_end_is_not_whole(
    rows: dict[int, UnwindRules | None], words: tuple[int, ...]
) -> None:
    """Unknown code, code without a table and a stack that was cut leave what was seen, and say so."""
    found = unwind.walk(Space(rows), {IP: LEAF + 8, SP: BASE}, stack(*words))
    assert not found.whole
    assert found.addresses[0] == LEAF + 8


def test_a_loop_ends() -> None:
    """A table that leads nowhere cannot hold the collector up."""
    same = UnwindRules(cfa=Rule("register", SP, 0), saved=((IP, 0),), others=(), return_register=IP)
    found = unwind.walk(Space({LEAF: same}), {IP: LEAF + 8, SP: BASE}, stack(LEAF + 8, 0))
    assert not found.whole
    assert len(found.addresses) <= unwind.MAX_FRAMES


@pytest.mark.parametrize("saved", [(BP, BX, 12, 13, 14, 15), (BX, BP, 12, 13, 14, 15)])
def test_the_caller_of_generated_code_is_found(saved: tuple[int, ...]) -> None:
    """Kernels of oneDNN have no table: their caller is behind the registers that they push, in either order."""
    frame = BASE + 8 * 12
    values = {BP: frame, BX: 1, 12: 2, 13: 3, 14: 4, 15: 5}
    pushed = [values[number] for number in reversed(saved)]
    words = [0x55, *pushed, MIDDLE + 5, 0, 0, 0, 0, 0x1, START + 3, 0]
    found = unwind.walk(Space(SPACE.rows, calls=(MIDDLE + 5,)), {IP: KERNEL_CODE + 7, SP: BASE, BP: 99}, stack(*words))
    assert found.attached
    assert not found.whole
    assert found.addresses == (KERNEL_CODE + 7, MIDDLE + 4, START + 2)


def test_a_stale_return_address_is_no_caller() -> None:
    """A word that points behind a call, from which the walk does not come to its end, is passed over."""
    words = [OUTER + 3, 0, 0, LEAF + 9, START + 3, 0]
    space = Space({LEAF: PLAIN, OUTER: None, START: BEGIN}, calls=(OUTER + 3, LEAF + 9))
    found = unwind.walk(space, {IP: KERNEL_CODE + 7, SP: BASE}, stack(*words))
    assert found.addresses == (KERNEL_CODE + 7, LEAF + 8, START + 2)


def test_a_caller_that_returns_to_nothing_is_none() -> None:
    """Stacks hold 0 in many places: one in a return address's place is no start of a thread, so the search goes on."""
    words = [OUTER + 3, 0, LEAF + 9, START + 3, 0]
    space = Space({LEAF: PLAIN, OUTER: PLAIN, START: BEGIN}, calls=(OUTER + 3, LEAF + 9))
    found = unwind.walk(space, {IP: KERNEL_CODE + 7, SP: BASE}, stack(*words))
    assert found.addresses == (KERNEL_CODE + 7, LEAF + 8, START + 2)


def test_generated_code_without_a_caller_stands_alone() -> None:
    """Where no caller is found nothing is invented."""
    found = unwind.walk(SPACE, {IP: KERNEL_CODE + 7, SP: BASE}, stack(1, 2, 3))
    assert found == unwind.Walk(addresses=(KERNEL_CODE + 7,), whole=False, pointers=(BASE,), cut=unwind.GENERATED)


def test_registers_that_were_popped_hold_their_values() -> None:
    """In a function's end the table still names places below the stack pointer: what lay there is in its register."""
    popped = UnwindRules(
        cfa=Rule("register", SP, 16), saved=((IP, -8), (BP, -16), (BX, -24)), others=(), return_register=IP
    )
    framed = UnwindRules(cfa=Rule("register", BX, 8), saved=((IP, -8),), others=(), return_register=IP)
    space = Space({LEAF: popped, MIDDLE: framed, START: BEGIN})
    found = unwind.walk(space, {IP: LEAF + 8, SP: BASE, BP: 1, BX: BASE + 24}, stack(7, MIDDLE + 5, 0, START + 3))
    assert found.whole
    assert found.addresses == (LEAF + 8, MIDDLE + 4, START + 2)


def test_an_expression_that_is_not_known_ends_one_stack() -> None:
    """It is cut there; the window goes on."""
    strange = UnwindRules(cfa=Rule("expression", code=b"\x02"), saved=((IP, -8),), others=(), return_register=IP)
    found = unwind.walk(Space({LEAF: strange}), {IP: LEAF + 8, SP: BASE}, stack(MIDDLE + 5))
    assert not found.whole
    assert found.addresses == (LEAF + 8,)


def test_the_caller_of_a_kernel_that_has_moved_the_stack_pointer_down() -> None:
    """Beyond its buffer the caller is found by the pointer that the kernel keeps; what lies in the buffer is stale."""
    words = [0] * 700
    kept = 600
    words[15] = BASE + 8 * kept
    words[40], words[41] = LEAF + 9, START + 3  # of an earlier call
    words[kept + 6], words[kept + 9], words[kept + 10] = MIDDLE + 5, 1, START + 3
    words[kept + 1 : kept + 6] = [0] * 5
    words[kept] = words[kept + 5] = BASE + 8 * (kept + 9)
    space = Space(SPACE.rows, calls=(MIDDLE + 5, LEAF + 9))
    found = unwind.walk(space, {IP: KERNEL_CODE + 7, SP: BASE, BP: 99}, stack(*words))
    assert found.attached
    assert found.addresses == (KERNEL_CODE + 7, MIDDLE + 4, START + 2)


def test_a_signals_frame_was_not_called() -> None:
    """The address that a signal interrupted is taken as it is."""
    handler = PLAIN._replace(signal=True)
    found = unwind.walk(Space({LEAF: handler, MIDDLE: BEGIN}), {IP: LEAF + 8, SP: BASE}, stack(MIDDLE, 0))
    assert found.addresses == (LEAF + 8, MIDDLE)


def test_perfs_registers_have_dwarfs_numbers() -> None:
    """Perf numbers AX BX CX DX SI DI BP SP IP; R8 is its 16th."""
    mask = 0b111111111 | 0b11 << 16
    found = unwind.dwarf_registers(mask, (0, 1, 2, 3, 4, 5, 6, 7, 8, 80, 90))
    assert found == {0: 0, 3: 1, 2: 2, 1: 3, 4: 4, 5: 5, 6: 6, 7: 7, 16: 8, 8: 80, 9: 90}
