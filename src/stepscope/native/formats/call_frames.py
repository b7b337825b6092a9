"""Call frame instructions of DWARF: executed up to an address, they locate the caller's registers.

Source: DWARF 4, 6.4 and 7.23 (https://dwarfstd.org/doc/DWARF4.pdf); LSB 5, 10.6, for GNU's own instructions.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from stepscope.tables.errors import FormatError

_FIXED = {0x00: "<Q", 0x02: "<H", 0x03: "<I", 0x04: "<Q", 0x0A: "<h", 0x0B: "<i", 0x0C: "<q"}
_UNSIGNED, _SIGNED, _OMITTED, _RELATIVE = 0x01, 0x09, 0xFF, 0x10
_CONTINUED, _NEGATIVE, _SEVEN = 0x80, 0x40, 0x7F
_MAX_STATES, _MAX_TEXT = 64, 32
_OF_REGISTER = frozenset((0x05, 0x06, 0x07, 0x08, 0x09, 0x10, 0x11, 0x14, 0x15, 0x16, 0x2F))
"""Instructions whose first operand is a register number."""


class Rule(NamedTuple):
    """Location of one of the caller's values."""

    how: str
    """Kind of rule. offset: in memory at the CFA plus ``offset``. value: the CFA plus ``offset``. register: in register
    ``number``, plus ``offset``. expression: in memory at the address computed by ``code``. value-expression: the value
    computed by ``code``. same: unchanged. undefined: nowhere; for the return address, there is no caller."""
    number: int = 0
    offset: int = 0
    code: bytes = b""


class UnwindRules(NamedTuple):
    """Rules in force at one instruction. The CFA is the caller's stack pointer. Registers by DWARF number; registers
    not listed are unchanged.
    """

    cfa: Rule
    saved: tuple[tuple[int, int], ...]
    """Saved registers: (register, offset from the CFA of the memory that holds its value)."""
    others: tuple[tuple[int, Rule], ...]
    """Registers that are elsewhere, or nowhere."""
    return_register: int
    signal: bool = False
    """Flag: a signal frame, whose caller was interrupted rather than calling."""


class Common(NamedTuple):
    """The part shared by the entries of many functions (a CIE)."""

    code_factor: int
    data_factor: int
    return_register: int
    encoding: int
    """Encoding of pointers."""
    augmented: bool
    signal: bool
    instructions: bytes


class Cursor:
    """A position in bytes. ``base`` is the address of the first of them."""

    __slots__ = ("at", "base", "data")

    def __init__(self, data: bytes | memoryview, at: int = 0, base: int = 0) -> None:
        self.data = data
        self.at = at
        self.base = base

    def byte(self) -> int:
        """One byte."""
        value = self.data[self.at]
        self.at += 1
        return value

    def fixed(self, code: str) -> int:
        """A number, by its letter in ``struct``."""
        value: int = struct.unpack_from(code, self.data, self.at)[0]
        self.at += struct.calcsize(code)
        return value

    def _leb(self) -> tuple[int, int, int]:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & _SEVEN) << shift
            shift += 7
            if byte < _CONTINUED:
                return value, shift, byte

    def unsigned(self) -> int:
        """A ULEB128."""
        return self._leb()[0]

    def signed(self) -> int:
        """A SLEB128."""
        value, shift, last = self._leb()
        return value - (1 << shift) if last & _NEGATIVE else value

    def block(self) -> bytes:
        """A block of bytes after its length.

        Raises:
            IndexError: the block is cut.
        """
        size = self.unsigned()
        if self.at + size > len(self.data):
            raise IndexError(size)
        self.at += size
        return bytes(self.data[self.at - size : self.at])

    def text(self) -> str:
        """A short zero-terminated string."""
        value, _, _ = bytes(self.data[self.at : self.at + _MAX_TEXT]).partition(b"\0")
        self.at += len(value) + 1
        return value.decode("ascii", "replace")

    def pointer(self, encoding: int) -> int:
        """An encoded pointer (LSB 5, 10.5.1); relative ones are relative to their own place."""
        if encoding == _OMITTED:
            return 0
        place = self.base + self.at
        form = encoding & 0x0F
        if form == _UNSIGNED:
            value = self.unsigned()
        elif form == _SIGNED:
            value = self.signed()
        else:
            value = self.fixed(_FIXED[form])
        return value + place if encoding & 0x70 == _RELATIVE else value


class _State:
    __slots__ = ("cfa", "registers", "saved")

    def __init__(self, cfa: Rule | None = None, registers: dict[int, Rule] | None = None) -> None:
        self.cfa = cfa
        self.registers = dict(registers or {})
        self.saved: list[tuple[Rule | None, dict[int, Rule]]] = []


def row(common: Common, instructions: Cursor, start: int, address: int) -> UnwindRules | None:
    """The rules at ``address`` in a function that begins at ``start``; None if the CFA is not defined.

    Raises:
        FormatError: an instruction is not known.
        IndexError, struct.error: the instructions are cut.
    """
    state = _State()
    _run(Cursor(common.instructions), common, state, address, address, {})
    first = dict(state.registers)
    _run(instructions, common, state, start, address, first)
    if state.cfa is None:
        return None
    rules = [(number, rule) for number, rule in state.registers.items() if rule.how != "same"]
    return UnwindRules(
        cfa=state.cfa,
        saved=tuple((number, rule.offset) for number, rule in rules if rule.how == "offset"),
        others=tuple((number, rule) for number, rule in rules if rule.how != "offset"),
        return_register=common.return_register,
        signal=common.signal,
    )


def _run(code: Cursor, common: Common, state: _State, address: int, until: int, first: dict[int, Rule]) -> None:
    """Run instructions until one is for an address after ``until``."""
    factor = common.data_factor
    while code.at < len(code.data):
        byte = code.byte()
        number = code.unsigned() if byte in _OF_REGISTER else byte & 0x3F
        step = -1
        match byte & 0xC0 or byte:
            case 0x40:  # advance_loc
                step = number
            case 0x80 | 0x05:  # offset, offset_extended
                state.registers[number] = Rule("offset", offset=code.unsigned() * factor)
            case 0xC0 | 0x06:  # restore, restore_extended
                _restore(state, number, first)
            case 0x00 | 0x2D:  # nop; negate_ra_state
                pass
            case 0x01:  # set_loc
                address = code.pointer(common.encoding)
                if address > until:
                    return
            case 0x02:  # advance_loc1, 2, 4
                step = code.fixed("<B")
            case 0x03:
                step = code.fixed("<H")
            case 0x04:
                step = code.fixed("<I")
            case 0x07:  # undefined
                state.registers[number] = Rule("undefined")
            case 0x08:  # same_value
                state.registers[number] = Rule("same")
            case 0x09:  # register
                state.registers[number] = Rule("register", code.unsigned())
            case 0x0A:  # remember_state
                if len(state.saved) >= _MAX_STATES:
                    raise FormatError("states of a call frame nest too deep")
                state.saved.append((state.cfa, dict(state.registers)))
            case 0x0B:  # restore_state
                state.cfa, state.registers = state.saved.pop()
            case 0x0C:  # def_cfa
                state.cfa = Rule("register", code.unsigned(), code.unsigned())
            case 0x0D:  # def_cfa_register
                state.cfa = Rule("register", code.unsigned(), _cfa(state).offset)
            case 0x0E:  # def_cfa_offset
                state.cfa = Rule("register", _cfa(state).number, code.unsigned())
            case 0x0F:  # def_cfa_expression
                state.cfa = Rule("expression", code=code.block())
            case 0x10:  # expression
                state.registers[number] = Rule("expression", code=code.block())
            case 0x11:  # offset_extended_sf
                state.registers[number] = Rule("offset", offset=code.signed() * factor)
            case 0x12:  # def_cfa_sf
                state.cfa = Rule("register", code.unsigned(), code.signed() * factor)
            case 0x13:  # def_cfa_offset_sf
                state.cfa = Rule("register", _cfa(state).number, code.signed() * factor)
            case 0x14:  # val_offset
                state.registers[number] = Rule("value", offset=code.unsigned() * factor)
            case 0x15:  # val_offset_sf
                state.registers[number] = Rule("value", offset=code.signed() * factor)
            case 0x16:  # val_expression
                state.registers[number] = Rule("value-expression", code=code.block())
            case 0x2E:  # GNU_args_size
                code.unsigned()
            case 0x2F:  # GNU_negative_offset_extended
                state.registers[number] = Rule("offset", offset=-code.unsigned() * factor)
            case _:
                raise FormatError(f"instruction {byte:#x} of a call frame is not known")
        if step >= 0:
            address += step * common.code_factor
            if address > until:
                return


def _cfa(state: _State) -> Rule:
    if state.cfa is None:
        raise FormatError("a call frame changes a CFA that it has not defined")
    return state.cfa


def _restore(state: _State, number: int, first: dict[int, Rule]) -> None:
    if number in first:
        state.registers[number] = first[number]
    else:
        state.registers.pop(number, None)
