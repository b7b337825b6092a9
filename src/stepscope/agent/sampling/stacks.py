"""Interned code objects and stacks: each is one line of the log, so a sample is one number.

Code objects are known by identity and kept alive: hashing one means hashing all of its constants.
"""

from __future__ import annotations

import opcode

from stepscope.agent.core import autograph, frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Optional

    from stepscope.agent.state import AgentState

MAX_FRAMES = 60
"""Frames kept per stack: the outermost ``ROOT_FRAMES`` and the innermost of the rest."""
ROOT_FRAMES = 15
_PLAIN: dict[int, tuple[int, int, bool]] = {}
_MAX_STACKS = 50_000
"""Distinct stacks or code objects remembered; beyond it all get new ids, so that memory stays bounded (50 MB)."""


_BEGIN = opcode.opmap.get("RESUME", -1)
"""Instruction at which a function begins, or a generator runs again; Python 3.10 and earlier have none."""


def begun(frame: FrameType) -> FrameType:
    """The caller of a frame that has not run an instruction since it was entered, in which time has been spent by now;
    else the frame.
    """
    caller, at = frame.f_back, frame.f_lasti
    if caller is None or (at >= 0 and frame.f_code.co_code[at] != _BEGIN):
        return frame
    return caller


class StackTable:
    """The tables of one process.

    Used by the agent's thread, and by the main thread in the handler of ``agent.sampling.cpu_timer``: each step is one
    dictionary operation, so the worst outcome of a race is one stack with two ids.
    """

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._codes: dict[int, tuple[int, CodeType, bool]] = {}
        self._seen: dict[tuple[int, ...], tuple[int, bool]] = {}
        self._stacks: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
        self._origins: dict[int, dict[int, tuple[int, int, bool]]] = {}
        """By identity of a code object that AutoGraph made: its lines -> (id of the function behind it, line, whether
        it is the user's)."""
        self._functions: dict[tuple[str, str], int] = {}

    def stack(self, leaf: FrameType, wait: int = 0) -> tuple[int, bool]:
        """Id of the stack that ends in ``leaf``, and whether user code is in it; ``wait``: id of a ``wait`` line.

        A stack that was seen before costs a walk over identities and instruction offsets: a frame's line number is
        decoded from a table on every access.
        """
        walk: list[int] = [wait]
        add = walk.append
        frame: Optional[FrameType] = leaf
        while frame is not None:
            add(id(frame.f_code))
            add(frame.f_lasti)
            frame = frame.f_back
        key = tuple(walk)
        known = self._seen.get(key)
        if known is None:
            if max(len(self._seen), len(self._codes)) >= _MAX_STACKS:
                self._seen.clear()
                self._stacks.clear()
                self._codes.clear()
                self._origins.clear()
            known = self._seen[key] = self._intern(leaf, wait)
        return known

    def _intern(self, leaf: FrameType, wait: int) -> tuple[int, bool]:
        chain = []
        own = False
        frame: Optional[FrameType] = leaf
        while frame is not None:
            code = self._codes.get(id(frame.f_code)) or self._code(frame.f_code)
            at = frame.f_lineno or 0
            number, line, mine = self._origin(frame.f_code).get(at) or (code[0], at, code[2])
            own = own or mine
            chain.append((number, line))
            frame = frame.f_back
        if len(chain) > MAX_FRAMES:
            chain[MAX_FRAMES - ROOT_FRAMES : len(chain) - ROOT_FRAMES] = []
        chain.reverse()
        lines = (wait, tuple(chain))
        stack = self._stacks.get(lines)
        if stack is None:
            stack = self._stacks[lines] = self._state.new_id("stack")
            told: dict[str, object] = {"t": "stack", "at": self._state.now(), "id": stack, "frames": chain}
            if wait:
                told["wait"] = wait
            self._state.log(told)
        return stack, own

    def _code(self, code: CodeType) -> tuple[int, CodeType, bool]:
        number = self._state.new_id("code")
        own = frames.is_own(code.co_filename)
        known = self._codes[id(code)] = (number, code, own)
        line: dict[str, object] = {"t": "code", "at": self._state.now(), "id": number}
        line.update(file=frames.absolute(code.co_filename), function=frames.function_name(code))
        line.update(line=code.co_firstlineno, own=own)
        self._state.log(line)
        return known

    def _origin(self, code: CodeType) -> dict[int, tuple[int, int, bool]]:
        """What lies behind each line of code that AutoGraph made; nothing for other code, or while that is unknown."""
        if autograph.PREFIX not in code.co_filename:
            return _PLAIN
        made = self._origins.get(id(code))
        found = autograph.converted(code.co_filename) if made is None else None
        if found is not None:
            source, lines = found
            name = frames.function_name(source)
            made = self._origins[id(code)] = {
                line: (
                    self._function(source, file, name if function == source.co_name else function),
                    user_line,
                    frames.is_own(file),
                )
                for line, (file, user_line, function) in lines.items()
            }
        return made or _PLAIN

    def _function(self, code: CodeType, file: str, function: str) -> int:
        """Id of a user's function that never runs itself, because AutoGraph's version of it does."""
        key = (frames.absolute(file), function)
        number = self._functions.get(key)
        if number is None:
            number = self._functions[key] = self._state.new_id("code")
            line: dict[str, object] = {"t": "code", "at": self._state.now(), "id": number}
            line.update(file=key[0], function=function, line=code.co_firstlineno, own=frames.is_own(file))
            self._state.log(line)
        return number
