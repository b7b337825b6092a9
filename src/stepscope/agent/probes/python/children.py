"""Processes that the job starts, with the user's line: subprocess and multiprocessing.

``os.fork`` and ``os.posix_spawn`` are left alone: their children are found through their parent in the process table.
"""

from __future__ import annotations

import functools

from stepscope.agent.core import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

_MAX_COMMAND = 300


def attach_subprocess(state: AgentState, module: Foreign) -> None:
    """Wrap ``subprocess.Popen.__init__``."""
    original = module.Popen.__init__

    @functools.wraps(original)
    def __init__(self: Foreign, args: Foreign, *rest: Foreign, **kwargs: Foreign) -> None:  # noqa: N807
        original(self, args, *rest, **kwargs)
        with guard:
            _started(state, self.pid, _words(args))

    guard = state.guard("children")
    state.patch(module.Popen, "__init__", __init__)
    state.log({"t": "probe", "at": state.now(), "name": "children.subprocess", "attached": True})


def attach_multiprocessing(state: AgentState, module: Foreign) -> None:
    """Wrap ``multiprocessing.process.BaseProcess.start``."""
    original = module.BaseProcess.start

    @functools.wraps(original)
    def start(self: Foreign) -> None:
        original(self)
        with guard:
            _started(state, self.pid or 0, "%s %s" % (type(self).__name__, self.name))

    guard = state.guard("children")
    state.patch(module.BaseProcess, "start", start)
    state.log({"t": "probe", "at": state.now(), "name": "children.multiprocessing", "attached": True})


def _words(args: Foreign) -> str:
    if isinstance(args, (list, tuple)):
        return " ".join(word for word in args if isinstance(word, str))
    return args if isinstance(args, str) else ""


def _started(state: AgentState, pid: int, command: str) -> None:
    if state.lines.dormant:
        return
    file, function, line = frames.user_frame() or ("", "", 0)
    entry: dict[str, object] = {"t": "child", "at": state.now(), "pid": pid, "command": command[:_MAX_COMMAND]}
    entry.update(file=file, line=line, function=function)
    state.log(entry)


TARGETS = (("subprocess", attach_subprocess), ("multiprocessing.process", attach_multiprocessing))
