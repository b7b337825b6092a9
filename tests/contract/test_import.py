"""Importing stepscope does nothing, and its light commands stay light."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("numpy", "pyarrow", "rich", "msgspec", "click", "tensorflow", "keras", "asyncio", "multiprocessing")

PROBE = """
import json, os, signal, sys, threading, warnings
import logging
def state():
    return {
        "threads": threading.active_count(),
        "signals": [repr(signal.getsignal(s)) for s in signal.valid_signals() if s not in (9, 19)],
        "environ": dict(os.environ),
        "filters": len(warnings.filters),
        "handlers": len(logging.getLogger().handlers),
        "cwd": os.getcwd(),
        "hooks": [repr(sys.meta_path), repr(sys.path_hooks), repr(sys.excepthook), repr(sys.displayhook)],
        "descriptors": sorted(os.listdir("/proc/self/fd")),
    }
before = state()
import stepscope
after = state()
print(json.dumps({"changed": [k for k in before if before[k] != after[k]], "modules": sorted(sys.modules)}))
"""


def _python(*args: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *args], check=True, capture_output=True, text=True, timeout=60, cwd=cwd)


def _roots(modules: list[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_importing_has_no_effect() -> None:
    """``import stepscope`` changes no thread, signal, variable, filter, handler, hook or descriptor and is silent."""
    done = _python("-c", PROBE)
    found = json.loads(done.stdout)
    assert found["changed"] == []
    assert done.stderr == ""
    assert _roots(found["modules"]).isdisjoint(HEAVY)


def test_importing_writes_nothing(tmp_path: Path) -> None:
    """``import stepscope`` leaves no file in the working directory."""
    _python("-B", "-c", "import stepscope", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("--version",), ("--help",), ("run", "--help")])
def test_light_commands_load_nothing_heavy(command: tuple[str, ...]) -> None:
    """``stepscope --version`` and help texts load neither numpy nor pyarrow nor a framework."""
    done = _python("-X", "importtime", "-m", "stepscope", *command)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert _roots(sorted(loaded)).isdisjoint({"numpy", "pyarrow", "tensorflow", "keras"})
    assert done.stdout.strip()


def test_the_package_shows_what_it_has() -> None:
    """Completion knows names that are only loaded when they are used, before and after that."""
    script = (
        "import stepscope; print(dir(stepscope)); stepscope.span; print(dir(stepscope)); from stepscope import *; step"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    expected = str(["__version__", "keras_callback", "metric", "open", "span", "step", "timer"])
    assert done.stdout.splitlines() == [expected, expected]
