"""Settings for all tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from stepscope.native.garbage import collect_less

# A machine under load is no reason to fail: no test is timed.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# Modules and fixtures stay: a tenth of the CPU time of tests in this process was the search for garbage among them.
collect_less()

# Who starts the tests in the background has them ignore Ctrl-C, and so would every job that they start and interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# pytest-xdist starts its workers by -c, and whose code "<string>" is follows from that: a worker is no such program.
if sys.argv[:1] == ["-c"]:
    sys.argv[0] = "pytest"

# pytest-xdist gives its workers the width of a terminal, and what is printed into no terminal has none.
os.environ.pop("COLUMNS", None)


@pytest.fixture(autouse=True, scope="session")
def _no_list_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs of tests that crash switch nothing off for the user who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        yield


@pytest.fixture(name="find_python", scope="session")
def _find_python() -> Callable[[str], str]:
    """Tells a Python of a version that runs; skips where there is none."""
    return _python_of


def _python_of(version: str) -> str:
    candidates = [shutil.which("python" + version) or ""]
    candidates += [str(p) for p in Path("~/.pyenv/versions").expanduser().glob(version + ".*/bin/python")]
    for candidate in filter(None, candidates):
        done = subprocess.run(
            [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.stdout.strip() == version:
            return candidate
    pytest.skip(f"no Python {version} on PATH or in ~/.pyenv/versions")
