"""The command line and environment of our own processes that run with a job."""

from __future__ import annotations

import json
import os
import signal
import sys

from stepscope.wire.env import RUN_VARIABLE

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
"""Signals whose default handling such a process restores, whatever its starter ignores or blocks."""
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_CODE = """\
import sys; sys.path.pop(0); import json; import os; os.nice({nice})
try:
    with open("/proc/self/oom_score_adj", "w") as file: file.write("1000")
except OSError: pass
own = json.loads(sys.argv.pop(1)); sys.path.insert(0, own.pop()); import stepscope; sys.path.pop(0)
sys.path.extend(p for p in own if p and p not in sys.path)
from stepscope.native.garbage import collect_less; collect_less()
from {module} import main; main(sys.argv[1:])
"""
"""Start-up code. Neither the user's directory nor a PYTHONPATH made for the job may shadow its imports; the paths that
its starter could import from are appended; stepscope itself is the starter's, also where another one is installed.
Importing takes half a second of CPU time: most are nice before. And where memory runs out, they are the first to go,
also while they import."""
_COMMAND = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "sys.path[:] = [p for p in sys.path if p]; from stepscope.cli.main import main; main()"
)
"""Prevents imports from the folder in which the job is started; can be interrupted however its starter was started."""
NICE = 10
"""Priority of our processes, in steps below the job's."""


def command(module: str, *args: str, nice: int = NICE) -> list[str]:
    """The command line that calls ``main(args)`` of a module of ours, imported at a priority ``nice`` below ours."""
    return [sys.executable, "-E", "-c", _CODE.format(module=module, nice=nice), json.dumps([*sys.path, _ROOT]), *args]


def of_command(*words: str) -> list[str]:
    """The command line of ``stepscope WORDS``."""
    return [sys.executable, "-c", _COMMAND, *words]


def environment() -> dict[str, str]:
    """This process's environment, without the variables that would make it be measured as part of a job."""
    return {name: value for name, value in os.environ.items() if name != RUN_VARIABLE}
