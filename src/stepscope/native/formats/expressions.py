"""DWARF expressions, as far as call frames use them: procedure linkage tables, realigned stacks, signal frames.

Source: DWARF 4, 2.5 and 7.7.1 (https://dwarfstd.org/doc/DWARF4.pdf).
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from stepscope.native.formats.call_frames import Cursor
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable

_WORD = 2**64 - 1
_SIGN = 1 << 63
_CONSTANTS = {0x08: "<B", 0x09: "<b", 0x0A: "<H", 0x0B: "<h", 0x0C: "<I", 0x0D: "<i", 0x0E: "<Q", 0x0F: "<q"}
_BINARY: dict[int, Callable[[int, int], int]] = {
    0x1A: operator.and_,
    0x1C: operator.sub,
    0x1E: operator.mul,
    0x21: operator.or_,
    0x22: operator.add,
    0x24: operator.lshift,
    0x25: operator.rshift,
    0x27: operator.xor,
}
_COMPARED: dict[int, Callable[[int, int], bool]] = {
    0x29: operator.eq,
    0x2A: operator.ge,
    0x2B: operator.gt,
    0x2C: operator.le,
    0x2D: operator.lt,
    0x2E: operator.ne,
}
_MAX_SHIFT = 63


def evaluate(
    code: bytes, register: Callable[[int], int], load: Callable[[int], int], *, first: int | None = None
) -> int:
    """The value of an expression.

    Args:
        code: the expression.
        register: the value of a register by its DWARF number.
        load: 8 bytes of memory at an address.
        first: initial stack content: the CFA, for rules of registers.

    Raises:
        FormatError: an operation is not known.
        LookupError: a register or memory is not available.
    """
    stack = [] if first is None else [first]
    cursor = Cursor(code)
    while cursor.at < len(code):
        byte = cursor.byte()
        if 0x30 <= byte <= 0x4F:
            stack.append(byte - 0x30)
        elif 0x70 <= byte <= 0x8F:
            stack.append(register(byte - 0x70) + cursor.signed())
        elif byte in _CONSTANTS:
            stack.append(cursor.fixed(_CONSTANTS[byte]))
        elif byte in _BINARY:
            right, left = stack.pop(), stack.pop()
            stack.append(_BINARY[byte](left, min(right, _MAX_SHIFT) if byte in (0x24, 0x25) else right))
        elif byte in _COMPARED:
            right, left = _signed(stack.pop()), _signed(stack.pop())
            stack.append(int(_COMPARED[byte](left, right)))
        else:
            match byte:
                case 0x06:  # deref
                    stack.append(load(stack.pop() & _WORD))
                case 0x10:  # constu
                    stack.append(cursor.unsigned())
                case 0x11:  # consts
                    stack.append(cursor.signed())
                case 0x12:  # dup
                    stack.append(stack[-1])
                case 0x13:  # drop
                    stack.pop()
                case 0x14:  # over
                    stack.append(stack[-2])
                case 0x16:  # swap
                    stack[-1], stack[-2] = stack[-2], stack[-1]
                case 0x1F:  # neg
                    stack.append(-stack.pop())
                case 0x20:  # not
                    stack.append(~stack.pop())
                case 0x23:  # plus_uconst
                    stack.append(stack.pop() + cursor.unsigned())
                case 0x92:  # bregx
                    number = cursor.unsigned()
                    stack.append(register(number) + cursor.signed())
                case 0x96:  # nop
                    pass
                case _:
                    raise FormatError(f"operation {byte:#x} of an expression is not known")
    return stack[-1] & _WORD


def _signed(value: int) -> int:
    value &= _WORD
    return value - 2**64 if value & _SIGN else value
