"""How a process of ours beside a job is started: its command line and its environment."""

from __future__ import annotations

import json
import os
import signal
import sys

from stepscope.wire.env import RUN_VARIABLE

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
"""What such a process takes as by default, whatever its starter ignores or blocks."""
_CODE = (
    "import sys; sys.path.pop(0); import json; "
    "own = json.loads(sys.argv.pop(1)); "
    "sys.path.extend(p for p in own if p and p not in sys.path); "
    "from {module} import main; main(sys.argv[1:])"
)
"""Neither the user's directory nor a PYTHONPATH that was made for the job may shadow what it imports; what its starter
could import is appended."""


def command(module: str, *args: str) -> list[str]:
    """The command line that calls ``main(args)`` of a module of ours."""
    return [sys.executable, "-E", "-c", _CODE.format(module=module), json.dumps(sys.path), *args]


def environment() -> dict[str, str]:
    """This process's, without what would have it measured as a part of a job."""
    return {name: value for name, value in os.environ.items() if name != RUN_VARIABLE}
