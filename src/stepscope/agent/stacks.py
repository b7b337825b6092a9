"""Interned code objects and stacks: each is one line of the log, a sample is then one number.

Code objects are known by identity and kept alive: hashing one means hashing all of its constants.
"""

from __future__ import annotations

from stepscope.agent import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Optional

    from stepscope.agent.state import AgentState

MAX_FRAMES = 60
"""Frames of a stack that are kept: the outermost ``ROOT_FRAMES`` and the innermost of the rest."""
ROOT_FRAMES = 15
_MAX_STACKS = 50_000
"""Distinct stacks remembered; beyond it they get new ids, so that memory stays bounded (about 50 MB)."""


class StackTable:
    """The tables of one process. Used by the agent's thread only."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._codes: dict[int, tuple[int, CodeType, bool]] = {}
        self._stacks: dict[tuple[tuple[int, int], ...], int] = {}

    def stack(self, leaf: FrameType) -> tuple[int, bool]:
        """Id of the stack that ends in ``leaf``, and whether user code is in it."""
        chain = []
        own = False
        frame: Optional[FrameType] = leaf
        codes = self._codes
        while frame is not None:
            code = frame.f_code
            known = codes.get(id(code)) or self._code(code)
            own = own or known[2]
            chain.append((known[0], frame.f_lineno or 0))
            frame = frame.f_back
        if len(chain) > MAX_FRAMES:
            chain[MAX_FRAMES - ROOT_FRAMES : len(chain) - ROOT_FRAMES] = []
        chain.reverse()
        key = tuple(chain)
        number = self._stacks.get(key)
        if number is None:
            if len(self._stacks) >= _MAX_STACKS:
                self._stacks.clear()
            number = self._stacks[key] = self._state.new_id("stack")
            self._state.log({"t": "stack", "at": self._state.now(), "id": number, "frames": chain})
        return number, own

    def has_user_code(self, leaf: FrameType) -> bool:
        """Whether user code is anywhere in the stack that ends in ``leaf``."""
        frame: Optional[FrameType] = leaf
        while frame is not None:
            if frames.is_own(frame.f_code.co_filename):
                return True
            frame = frame.f_back
        return False

    def _code(self, code: CodeType) -> tuple[int, CodeType, bool]:
        number = self._state.new_id("code")
        own = frames.is_own(code.co_filename)
        known = self._codes[id(code)] = (number, code, own)
        line: dict[str, object] = {"t": "code", "at": self._state.now(), "id": number}
        line.update(file=frames.absolute(code.co_filename), function=frames.function_name(code))
        line.update(line=code.co_firstlineno, own=own)
        self._state.log(line)
        return known
