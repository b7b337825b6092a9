"""Unwinds a thread's stack from registers and the top of its stack, as saved by ``perf record --call-graph dwarf``.

x86-64. A stack is whole if it ended where the unwind tables say that there is no caller, at the start of a program or
thread. Generated code (oneDNN's kernels) has no tables: its caller is searched for on the stack, as the first word that
points after a call in code with tables. Such a stack is never called whole, and counts only if it can be walked to its
end.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from stepscope.native.formats import expressions
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.native.formats.call_frames import Rule, UnwindRules

MAX_FRAMES = 512
MAX_SCAN_BYTES = 4096
"""Bytes searched for the caller of generated code: oneDNN's kernels keep what they need in registers and in a frame of
some hundred bytes."""
KEPT_POINTER_BYTES = 256
"""Bytes from the stack pointer in which a kernel that has moved it keeps the old value. Source: oneDNN,
src/cpu/x64/gemm/f32/jit_avx512_common_gemm_f32.cpp: ORIG_SP lies at 120 in TensorFlow 2.21."""
PUSHED_BYTES = 48
"""Bytes pushed by a kernel's prologue, between its caller's frame and the pointer that it keeps."""
WORD = 8
_U64 = struct.Struct("<Q")
_STACK_POINTER, _RETURN_ADDRESS = 7, 16
X86_REGISTERS = (0, 3, 2, 1, 4, 5, 6, 7, _RETURN_ADDRESS)
"""DWARF numbers of the registers that perf numbers from 0: AX BX CX DX SI DI BP SP IP."""
_X86_R8 = 16
"""perf's number of R8; R8 to R15 have the DWARF numbers 8 to 15."""
_LOST_BY_CALLS = (0, 1, 2, 4, 5, 8, 9, 10, 11)
"""Registers that a call may overwrite. Source: System V ABI AMD64, 3.2.1."""
_SAVED = ((6, 3, 12, 13, 14, 15), (3, 6, 12, 13, 14, 15), ())
"""Registers that oneDNN's kernels push first (BP BX R12 to R15), in the orders of its versions; or none. Source:
oneDNN, src/cpu/x64/jit_generator.hpp, abi_save_gpr_regs and preamble(); the first order was observed in TensorFlow
2.21."""


DEEPER, NO_ROW, NO_CODE = "deeper than what was copied", "code without unwind rows", "no code"
LOST, ENDLESS, GENERATED = "a register that is needed is lost", "no end", "generated code"
"""Reasons why a stack is not whole."""


class Code(NamedTuple):
    """Facts about a code address."""

    generated: bool
    """Flag: outside any file."""
    row: UnwindRules | None
    interpreter: bool = False
    """Flag: Python's evaluation loop, some of whose registers are needed."""


class Space(Protocol):
    """An address space."""

    def code(self, address: int) -> Code | None:
        """The code at an address; None if there is none."""

    def called_from(self, address: int) -> bool:
        """Whether the bytes before an address are an indirect call, in a file's code."""


class InterpreterLoop(NamedTuple):
    """Python's evaluation loop in a stack."""

    frame: int
    """Index of its frame in the stack, leaf first."""
    registers: dict[int, int]
    """Callee-saved registers, by DWARF number."""


class Walk(Struct, frozen=True, kw_only=True):
    """A stack, leaf first."""

    addresses: tuple[int, ...]
    """Address of the leaf, and return addresses minus 1: each is within its own function."""
    whole: bool
    attached: bool = False
    """Flag: the leaf is generated code, whose caller was found by searching."""
    pointers: tuple[int, ...] = ()
    """Stack pointer in each of the frames."""
    loops: tuple[InterpreterLoop, ...] = ()
    """Evaluation loops, leaf first."""
    cut: str = ""
    """Reason why the stack is not whole, one of the strings above."""


def dwarf_registers(mask: int, values: Sequence[int]) -> dict[int, int]:
    """Perf's registers of x86-64, by DWARF number."""
    found = {}
    numbers = [bit for bit in range(64) if mask >> bit & 1]
    for bit, value in zip(numbers, values, strict=False):
        if bit < len(X86_REGISTERS):
            found[X86_REGISTERS[bit]] = value
        elif _X86_R8 <= bit < _X86_R8 + 8:
            found[8 + bit - _X86_R8] = value
    return found


def walk(space: Space, registers: dict[int, int], stack: memoryview) -> Walk:
    """Walk a stack; ``stack`` begins at the stack pointer. A stack that cannot be walked to its end is not whole."""
    machine = _Machine(dict(registers), stack)
    if _RETURN_ADDRESS not in registers or _STACK_POINTER not in registers:
        return Walk(addresses=(), whole=False, cut=LOST)
    leaf = space.code(machine.registers[_RETURN_ADDRESS])
    if leaf is not None and leaf.generated:
        return _from_generated(space, machine)
    frames: list[tuple[int, int]] = []
    cut = _walk_on(space, machine, frames, called=False)
    return _walked(frames, machine.loops, cut=cut)


def _walked(
    frames: Sequence[tuple[int, int]], loops: Sequence[InterpreterLoop] = (), *, cut: str, attached: bool = False
) -> Walk:
    """The walk over ``frames``: (address, stack pointer), leaf first."""
    addresses, pointers = tuple(zip(*frames, strict=True)) or ((), ())
    return Walk(
        addresses=addresses,
        whole=not cut and not attached,
        attached=attached,
        pointers=pointers,
        loops=tuple(loops),
        cut=cut,
    )


def _walk_on(
    space: Space, machine: _Machine, frames: list[tuple[int, int]], *, called: bool, told: bool = False
) -> str:
    """Add frames until the end and return why it is not the start of a thread, "" if it is. With ``told``, only the
    unwind tables decide that, not a return address of 0, which stacks hold in many places.
    """
    while len(frames) < MAX_FRAMES:
        address = machine.registers.get(_RETURN_ADDRESS, 0)
        if address == 0:
            return "" if frames and not told else NO_CODE
        inside = address - called
        code = space.code(inside)
        before = machine.registers[_STACK_POINTER]
        if code is not None:
            if code.interpreter:
                machine.loops.append(InterpreterLoop(len(frames), machine.kept()))
            frames.append((inside, before))
        if code is None or code.row is None:
            return NO_CODE if code is None else NO_ROW
        try:
            ended = machine.leave(code.row)
        except (LookupError, ValueError, struct.error, FormatError) as error:
            return DEEPER if machine.is_beyond(error.args[:1]) else LOST
        if ended:
            return ""
        if called and machine.registers[_STACK_POINTER] <= before:  # a stack that does not shrink is invalid
            return ENDLESS
        called = not code.row.signal
    return ENDLESS


def _from_generated(space: Space, machine: _Machine) -> Walk:
    """Search for the caller of generated code: the first candidate from which the walk reaches its end.

    First try the place where a kernel that moved the stack pointer keeps the old one: below its buffer are leftovers of
    earlier calls.
    """
    leaf = (machine.registers[_RETURN_ADDRESS], machine.registers[_STACK_POINTER])
    last = len(machine.stack) - WORD
    kept = [
        pointer - machine.base + PUSHED_BYTES
        for pointer in kept_pointers(machine.stack, machine.base, machine.base + len(machine.stack))
    ]
    for offset in (*kept, *range(0, min(last + 1, MAX_SCAN_BYTES), WORD)):
        if offset > last or not space.called_from(_U64.unpack_from(machine.stack, offset)[0]):
            continue
        for saved in _SAVED:
            caller = _caller(machine, offset, saved)
            frames = [leaf]
            if caller is not None and not _walk_on(space, caller, frames, called=True, told=True):
                return _walked(frames, caller.loops, cut="", attached=True)
    return _walked([leaf], cut=GENERATED)


def kept_pointers(stack: memoryview, low: int, high: int) -> list[int]:
    """Words near the stack pointer that may be a saved stack pointer: at least ``low`` and below ``high``."""
    words = [_U64.unpack_from(stack, at)[0] for at in range(0, min(len(stack) - WORD + 1, KEPT_POINTER_BYTES), WORD)]
    return [word for word in words if low <= word < high and word % WORD == 0]


def _caller(machine: _Machine, offset: int, saved: Sequence[int]) -> _Machine | None:
    """The machine state in the caller whose return address is at an offset, with the ``saved`` registers below it."""
    if offset < WORD * len(saved):
        return None
    registers = machine.kept()
    for place, number in enumerate(saved, 1):
        registers[number] = _U64.unpack_from(machine.stack, offset - WORD * place)[0]
    registers[_RETURN_ADDRESS] = _U64.unpack_from(machine.stack, offset)[0]
    registers[_STACK_POINTER] = machine.base + offset + WORD
    return _Machine(registers, machine.stack, machine.base)


class _Machine:
    """Registers by DWARF number, and the stack."""

    __slots__ = ("base", "loops", "registers", "stack")

    def __init__(self, registers: dict[int, int], stack: memoryview, base: int = -1) -> None:
        self.registers = registers
        self.stack = stack
        self.base = registers.get(_STACK_POINTER, 0) if base < 0 else base
        self.loops: list[InterpreterLoop] = []

    def kept(self) -> dict[int, int]:
        """The registers that a call preserves."""
        return {n: v for n, v in self.registers.items() if n not in _LOST_BY_CALLS}

    def load(self, address: int) -> int:
        """8 bytes of the stack.

        Raises:
            LookupError: they are not in the saved part.
        """
        at = address - self.base
        if not 0 <= at <= len(self.stack) - WORD:
            raise LookupError(address)
        value: int = _U64.unpack_from(self.stack, at)[0]
        return value

    def is_beyond(self, what: tuple[object, ...]) -> bool:
        """Whether a value that could not be loaded lies beyond the saved part."""
        return any(isinstance(one, int) and one > self.base + len(self.stack) - WORD for one in what)

    def leave(self, row: UnwindRules) -> bool:
        """Move to the caller; return whether there is none.

        Raises:
            LookupError: a needed register or memory is not available.
        """
        registers, stack, base = self.registers, self.stack, self.base
        cfa = self._cfa(row.cfa)
        last = len(stack) - WORD
        changed: dict[int, int] = {}
        pointer = registers[_STACK_POINTER]
        for number, offset in row.saved:
            if cfa + offset < pointer and number != row.return_register:
                continue  # popped already: compilers do not record each pop at a function's end
            at = cfa + offset - base
            if not 0 <= at <= last:
                raise LookupError(cfa + offset)
            changed[number] = _U64.unpack_from(stack, at)[0]
        lost = []
        for number, rule in row.others:
            value = self._value(rule, cfa)
            if value is None:
                if number == row.return_register and rule.how == "undefined":
                    return True
                lost.append(number)
            else:
                changed[number] = value
        if row.return_register not in changed:
            raise LookupError(row.return_register)
        registers.update(changed)
        registers[_STACK_POINTER] = cfa
        for number in lost:
            registers.pop(number, None)
        return False

    def _cfa(self, rule: Rule) -> int:
        if rule.how == "register":
            return self.registers[rule.number] + rule.offset
        return expressions.evaluate(rule.code, self.registers.__getitem__, self.load)

    def _value(self, rule: Rule, cfa: int) -> int | None:
        """The value of a register that is not simply in memory; None if it is undefined."""
        match rule.how:
            case "undefined":
                return None
            case "value":
                return cfa + rule.offset
            case "register":
                return self.registers.get(rule.number)
            case _:
                found = expressions.evaluate(rule.code, self.registers.__getitem__, self.load, first=cfa)
                return self.load(found) if rule.how == "expression" else found
