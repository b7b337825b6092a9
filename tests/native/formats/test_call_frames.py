"""Call frame instructions and expressions mean what the standard says."""

from __future__ import annotations

import struct

import pytest

from stepscope.native.formats import call_frames, expressions
from stepscope.native.formats.call_frames import Common, Cursor, Rule, UnwindRules
from stepscope.tables.errors import FormatError

CFA_RSP_8 = b"\x0c\x07\x08" + b"\x90\x01"
"""def_cfa rsp+8; the return address (16) at CFA-8: what every function begins with."""


def row(instructions: bytes, address: int, *, initial: bytes = CFA_RSP_8, start: int = 1000) -> UnwindRules | None:
    common = Common(
        code_factor=1,
        data_factor=-8,
        return_register=16,
        encoding=0x1B,
        augmented=True,
        signal=False,
        instructions=initial,
    )
    return call_frames.row(common, Cursor(instructions), start, address)


PUSH_RBP = b"\x41" + b"\x0e\x10" + b"\x86\x02" + b"\x43" + b"\x0d\x06"
"""advance 1; def_cfa_offset 16; rbp (6) at CFA-16; advance 3; def_cfa_register rbp."""


@pytest.mark.parametrize(
    ("address", "cfa", "saved"),
    [
        (1000, Rule("register", 7, 8), {16: -8}),
        (1001, Rule("register", 7, 16), {16: -8, 6: -16}),
        (1003, Rule("register", 7, 16), {16: -8, 6: -16}),
        (1004, Rule("register", 6, 16), {16: -8, 6: -16}),
        (5000, Rule("register", 6, 16), {16: -8, 6: -16}),
    ],
)
def test_a_prologue(address: int, cfa: Rule, saved: dict[int, int]) -> None:
    """Push rbp; mov rbp, rsp: the row changes where the instruction is behind it."""
    found = row(PUSH_RBP, address)
    assert found is not None
    assert (found.cfa, dict(found.saved)) == (cfa, saved)


def test_states_are_remembered_and_restored() -> None:
    """An early return in the middle of a function leaves what follows as it was."""
    code = PUSH_RBP + b"\x44" + b"\x0a" + b"\x0c\x07\x08" + b"\xc6" + b"\x41" + b"\x0b"
    early, behind = row(code, 1008), row(code, 1009)
    assert early is not None
    assert behind is not None
    assert (early.cfa, dict(early.saved)) == (Rule("register", 7, 8), {16: -8})
    assert (behind.cfa, dict(behind.saved)) == (Rule("register", 6, 16), {16: -8, 6: -16})


def test_the_start_of_a_thread_has_no_caller() -> None:
    """Undefined for the return address is told."""
    found = row(b"\x07\x10", 1000)
    assert found is not None
    assert found.others == ((16, Rule("undefined")),)


@pytest.mark.parametrize("code", [b"\x3f", b"\x0b", b"\x0f\x7f\x00"])
def test_damaged_instructions_are_refused(code: bytes) -> None:
    """Unknown or cut instructions raise what the table catches."""
    with pytest.raises((FormatError, IndexError, struct.error)):
        row(code, 1000)


def evaluate(code: bytes, registers: dict[int, int] | None = None, memory: dict[int, int] | None = None) -> int:
    return expressions.evaluate(code, (registers or {}).__getitem__, (memory or {}).__getitem__)


def test_the_expression_of_a_linkage_table() -> None:
    """The CFA of a PLT entry as GNU's linker writes it: rsp + 8, and 8 more behind the push."""
    code = bytes([0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22])
    assert evaluate(code, {7: 1000, 16: 0x4000}) == 1008
    assert evaluate(code, {7: 1000, 16: 0x400B}) == 1016


def test_a_realigned_stack() -> None:
    """breg6 -8, deref: the CFA is in memory."""
    assert evaluate(bytes([0x76, 0x78, 0x06]), {6: 500}, {492: 777}) == 777


def test_an_unknown_operation_is_refused() -> None:
    """Nothing is guessed."""
    with pytest.raises(FormatError, match="0x98"):
        evaluate(b"\x98")
    with pytest.raises(KeyError):
        evaluate(b"\x70\x00")


SIGNAL_FRAME = bytes.fromhex(
    "0f0477a00106"  # def_cfa_expression: rsp + 160, read there
    "1008027728"  # expression: r8 at rsp + 40
    "1009027730"  # r9 at rsp + 48
    "10100377a801"  # return address at rsp + 168
)
"""The beginning of glibc's __restore_rt: what a signal's handler returns to."""


def test_a_signals_frame() -> None:
    """Registers that expressions place: the number is read before the expression."""
    found = row(SIGNAL_FRAME, 1000)
    assert found is not None
    assert found.cfa == Rule("expression", code=bytes.fromhex("77a00106"))
    assert dict(found.others) == {
        8: Rule("expression", code=bytes.fromhex("7728")),
        9: Rule("expression", code=bytes.fromhex("7730")),
        16: Rule("expression", code=bytes.fromhex("77a801")),
    }
    assert evaluate(found.cfa.code, {7: 1000}, {1160: 77}) == 77


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("050c02", Rule("offset", offset=-16)),
        ("090c03", Rule("register", 3)),
        ("110c7e", Rule("offset", offset=16)),
        ("140c02", Rule("value", offset=-16)),
        ("150c7e", Rule("value", offset=16)),
        ("160c027608", Rule("value-expression", code=bytes.fromhex("7608"))),
        ("2f0c02", Rule("offset", offset=16)),
        ("070c", Rule("undefined")),
    ],
    ids=["offset", "register", "offset_sf", "val_offset", "val_offset_sf", "val_expression", "gnu", "undefined"],
)
def test_register_then_operand(text: str, rule: Rule) -> None:
    """Each instruction about a register names it first."""
    found = row(bytes.fromhex(text), 1000)
    assert found is not None
    rules = {**{number: Rule("offset", offset=offset) for number, offset in found.saved}, **dict(found.others)}
    assert rules[12] == rule
    assert rules[16] == Rule("offset", offset=-8)


@pytest.mark.parametrize("text", ["8c02080c", "8c02060c"], ids=["same_value", "restore_extended"])
def test_same_and_restored_registers_are_not_named(text: str) -> None:
    """They take a rule back."""
    found = row(bytes.fromhex(text), 1000)
    assert found is not None
    assert found.saved == ((16, -8),)
