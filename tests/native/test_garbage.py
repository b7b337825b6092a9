"""Our own processes look for garbage less often; whoever uses our code in a process of theirs does not."""

from __future__ import annotations

import subprocess
import sys

from stepscope.native import own_python
from stepscope.native.garbage import OBJECTS

SAYS = "import gc; print(gc.get_threshold())"


def said(*command: str) -> str:
    """The last line of a program's output."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_in_processes_of_ours() -> None:
    """In one that runs with a job, and in a command."""
    program = own_python.command("stepscope.wire.off")
    program[program.index("-c") + 1] = program[program.index("-c") + 1].rpartition("\nfrom ")[0] + "\n" + SAYS
    assert said(*program) == str(OBJECTS)
    asks = f"import sys, atexit\nsys.argv[1:] = ['--version']\natexit.register(lambda: exec({SAYS!r}))\n"
    assert said(sys.executable, "-c", asks + "from stepscope.cli.main import main; main()") == str(OBJECTS)


def test_not_where_sessions_are_read_by_a_program() -> None:
    """``stepscope.open`` leaves the collector of the program that calls it alone."""
    usual = said(sys.executable, "-c", SAYS)
    assert said(sys.executable, "-c", f"import stepscope; stepscope.open; {SAYS}") == usual
