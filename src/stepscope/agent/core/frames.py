"""Classifies files by whose code they hold, and finds the user's code in the calling stack.

User code is code that a user would edit: not site-packages or dist-packages, not the standard library, not a framework
wherever it is installed, not ours, not code generated at run time. Notebook cells, standard input and ``-c`` are user
code. Stacks go from root to leaf.
"""

from __future__ import annotations

import os
import sys

from stepscope.agent.core import autograph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

    Frame = tuple[str, str, int]

_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_DEPTH = 1000
"""Frames examined from the leaf on when searching for user code: imports of frameworks nest deep."""
_MOST = 16
"""Wrappers of one function that are looked through."""

_folder = "/"
"""Working directory when the process was armed."""
_own: dict[str, bool] = {}
_frameworks: list[str] = []


def armed_in(folder: str) -> None:
    """Resolve relative paths against ``folder`` from now on."""
    global _folder
    _folder = folder


def exclude(folder: str) -> None:
    """Treat everything below ``folder`` as a framework's code, even outside site-packages."""
    _frameworks.append(os.path.abspath(folder) + os.sep)
    _own.clear()


def absolute(path: str) -> str:
    """The absolute path, resolved as when the process was armed: scripts may change directory later."""
    if path.startswith(("/", "<")):
        return path
    return os.path.normpath(os.path.join(_folder, path))


def is_own(path: str) -> bool:
    """Whether a code object's file name means user code."""
    known = _own.get(path)
    if known is None:
        known = _own[path] = _decide(path)
    return known


def _decide(path: str) -> bool:
    if path.startswith("<"):
        script = getattr(sys, "argv", [""])[:1]
        return path.startswith(("<stdin>", "<ipython-input-")) or (path == "<string>" and script == ["-c"])
    full = absolute(path)
    if os.path.basename(full).startswith(autograph.PREFIX):
        return False
    if full.startswith((_STANDARD, _OURS + os.sep, *_frameworks)):
        return False
    return not any(part in full for part in _PACKAGES)


def user_stack(limit: int = 8, frame: Optional[FrameType] = None) -> list[Frame]:
    """The innermost ``limit`` user frames of the caller's (or ``frame``'s) stack: (file, function, line)."""
    found: list[Frame] = []
    frame = frame or sys._getframe(1)
    for _ in range(_DEPTH):
        if frame is None or len(found) >= limit:
            break
        code = frame.f_code
        if is_own(code.co_filename):
            found.append((absolute(code.co_filename), function_name(code), frame.f_lineno or 0))
        frame = frame.f_back
    found.reverse()
    return found


def user_frame() -> Optional[Frame]:
    """The innermost user frame of the caller's stack, or None."""
    stack = user_stack(1, sys._getframe(1))
    return stack[0] if stack else None


def is_user_frame(frame: FrameType) -> bool:
    """Whether this very frame runs user code."""
    return is_own(frame.f_code.co_filename)


def function_name(code: CodeType) -> str:
    """Qualified name where Python provides it (3.11 and later), else the plain name."""
    return str(getattr(code, "co_qualname", code.co_name))


def code_of(fn: Foreign) -> Optional[CodeType]:
    """The code object behind a callable: looks through wraps, partials, methods and tf.functions."""
    for _ in range(20):
        code = getattr(fn, "__code__", None)
        inner = getattr(fn, "__wrapped__", None)
        if inner is None and code is not None:
            return code  # type: ignore[no-any-return]
        for name in ("python_function", "_python_function", "func", "__func__"):
            inner = inner if inner is not None else getattr(fn, name, None)
        if inner is None and not isinstance(fn, type):
            inner = vars(type(fn)).get("__call__")
        if inner is None or inner is fn:
            return None
        fn = inner
    return None


def code_lines(fn: Foreign) -> tuple[str, int, int]:
    """(file, first line, last line) of the code that ``fn`` runs; ("", 0, 0) if it is not Python."""
    try:
        code = code_of(fn)
    except Exception:  # attribute access on a user's object may do anything
        code = None
    if code is None:
        return ("", 0, 0)
    return (absolute(code.co_filename), code.co_firstlineno, last_line(code))


def last_line(code: CodeType) -> int:
    """The last line of ``code`` or of a function inside it."""
    last = code.co_firstlineno
    if sys.version_info >= (3, 10):
        lines = [line for _, _, line in code.co_lines() if line]
    else:
        import dis

        lines = [line for _, line in dis.findlinestarts(code)]
    last = max([last, *lines])
    for constant in code.co_consts:
        if hasattr(constant, "co_firstlineno"):
            last = max(last, last_line(constant))
    return last


def ended_the_program(counts: Foreign) -> bool:
    """Whether the exception that nothing caught, if there was one, came out of a call of what is counted.

    In a shell or a notebook the last exception ended a line or a cell, not the program.
    """
    if hasattr(sys, "ps1"):
        return False
    called = counts
    for _ in range(_MOST):  # decorators share their code
        inner = getattr(called, "__wrapped__", None)
        called = called if inner is None else inner
    code = getattr(called, "__code__", None)
    trace = getattr(sys, "last_traceback", None)
    while trace is not None and trace.tb_frame.f_code is not code:
        trace = trace.tb_next
    return code is not None and trace is not None
