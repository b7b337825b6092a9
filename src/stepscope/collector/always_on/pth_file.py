"""The implementation of ``stepscope enable``: one .pth file in an environment's site-packages, with its settings.

``site`` executes a line of a .pth file that begins with ``import`` at the start of every Python of that environment;
our line catches all exceptions, because its target may be gone. ``site`` ignores a line that begins with ``#``: it
holds the settings, which the agent reads when a framework is imported. It is a single file, so that ``disable``
restores exactly the previous state.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from stepscope.tables import layout
from stepscope.tables.errors import TargetError, UsageError

PTH_NAME = "stepscope-enable.pth"
MARK = "# stepscope enable "
"""Beginning of the line with the settings, as in ``agent.always_on``."""
DEFAULT_QUOTA = 2 << 30
DEFAULT_JOB_QUOTA = 256 << 20
DEFAULT_KEEP_DAYS = 14.0
MIN_JOB_QUOTA = 16 << 20
_OLDEST = (3, 9)
_PROBE_TIMEOUT_S = 60.0
_PROBE = """
import json, os, site, sys, sysconfig
print(json.dumps({
    "version": list(sys.version_info[:2]), "executable": sys.executable, "prefix": sys.prefix,
    "purelib": sysconfig.get_path("purelib"), "sites": [os.path.realpath(p) for p in site.getsitepackages()],
    "implementation": sys.implementation.name,
}))
"""
_COMPILE = """
import compileall, sys
for folder in sys.argv[1:]:
    compileall.compile_dir(folder, quiet=2)
"""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for every job of an enabled environment."""

    version: int = 1
    python: str
    """Path of stepscope's own Python, which runs the sidecars."""
    package: str
    """Folder of the package stepscope, from which agent and wire are taken."""
    sessions: str = ""
    """Folder of the sessions; empty: the folder of the user who runs the job (``wire.sessions_folder``)."""
    quota_bytes: int = DEFAULT_QUOTA
    job_quota_bytes: int = DEFAULT_JOB_QUOTA
    keep_days: float = DEFAULT_KEEP_DAYS
    sources: bool = True
    page_module: str = ""
    """Module that serves the user's page (``user_page``), started with the first job; empty: no page is served."""
    page_port: int = 0
    """Its port; 0: the default, or the next free one."""
    gather: str = ""
    """Where each session is sent after its report; empty: nowhere."""
    fleet: str = ""
    """Where a part of each session is left after its report; empty: nowhere."""
    fleet_sources: bool = False
    """Whether those parts tell arguments and the text of lines."""
    clock_hosts: str = ""
    """HOST[:PORT],... whose clocks are compared; empty: none."""
    key_file: str = ""
    """File with the key that those hosts, or the server of ``gather`` or ``fleet``, share; it stands nowhere else."""
    ca_file: str = ""
    """File with the authorities that the server's certificate may be from; empty: those of the host."""
    share: float = 1.0
    """Share of the jobs that are measured (``wire.share``)."""
    drawn_by: str = ""
    """Id of the job by which it was drawn; only in its own copy of the settings."""


class Environment(Struct, frozen=True, kw_only=True):
    """One Python environment."""

    python: str
    version: tuple[int, int]
    site_packages: Path

    @property
    def pth(self) -> Path:
        """The path of the .pth file, existing or not."""
        return self.site_packages / PTH_NAME


def find_environment(python: str) -> Environment:
    """Ask a Python for its site-packages.

    Raises:
        TargetError: it does not run, or is too old.
    """
    found = shutil.which(python)
    if found is None:
        raise TargetError(f"{python}: no such program; expected --python PATH/bin/python")
    python = os.path.abspath(found)  # links are kept: a virtual environment's Python is one
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "STEPSCOPE"))}
    try:
        done = subprocess.run(
            [python, "-c", _PROBE],
            env={**environment, "STEPSCOPE_ALWAYS": "0"},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT_S,
            check=True,
        )
        said: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
        raise TargetError(f"{python} is not a working Python: {error}; expected --python PATH/bin/python") from error
    version = (int(said["version"][0]), int(said["version"][1]))
    if version < _OLDEST or said["implementation"] != "cpython":
        raise TargetError(
            f"{python} is {said['implementation']} {version[0]}.{version[1]}; the agent runs on CPython 3.9 and later"
        )
    folder = said["purelib"]
    if os.path.realpath(folder) not in said["sites"]:
        folder = said["sites"][0]
    return Environment(python=str(said["executable"]), version=version, site_packages=Path(folder))


def line_of(pth: Path, package: Path) -> str:
    """The line that ``site`` executes; ASCII for any paths."""
    code = (
        "try:\n"
        " _l = sys.modules['_frozen_importlib_external'].SourceFileLoader('stepscope_always', "
        f"{str(package / 'agent' / 'payload' / 'always_on.py')!a})\n"
        " exec(_l.get_code('stepscope_always'), "
        f"{{'__name__': 'stepscope_always', 'PTH': {str(pth)!a}, 'PACKAGE': {str(package)!a}}})\n"
        "except Exception: pass"
    )
    return f"import sys; exec({code!a})"


def read_settings(pth: Path) -> Settings | None:
    """The settings of an enabled environment; None if it is not enabled.

    Raises:
        UsageError: the file exists but is not ours.
    """
    try:
        lines = pth.read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{pth} cannot be read: {error.strerror}") from error
    for line in lines:
        if line.startswith(MARK):
            try:
                return msgspec.json.decode(line.removeprefix(MARK), type=Settings)
            except msgspec.DecodeError:
                break
    raise UsageError(f"{pth} was not written by stepscope enable; check it, then delete it by hand")


def write(environment: Environment, settings: Settings) -> None:
    """Enable: write the .pth file whole or not at all, and compile the agent for that Python if possible.

    Raises:
        UsageError: no rights, or a foreign file in its place.
    """
    read_settings(environment.pth)
    text = f"{MARK}{json.dumps(msgspec.to_builtins(settings))}\n{line_of(environment.pth, Path(settings.package))}\n"
    _compile(environment, Path(settings.package))
    try:
        layout.write_atomic(environment.pth, text.encode())
        environment.pth.chmod(0o644)
    except OSError as error:
        raise UsageError(
            f"{environment.pth} cannot be written: {error.strerror}; expected write access to the site-packages of "
            f"{environment.python}: run as its owner, or choose another environment with --python"
        ) from error


def remove(environment: Environment) -> bool:
    """Disable; return whether it was enabled.

    Raises:
        UsageError: no rights, or the file is not ours.
    """
    if read_settings(environment.pth) is None:
        return False
    try:
        environment.pth.unlink()
    except OSError as error:
        raise UsageError(f"{environment.pth} cannot be deleted: {error.strerror}; run as its owner") from error
    return True


def _compile(environment: Environment, package: Path) -> None:
    """Store compiled files with the agent: otherwise each process of a user without write access compiles it again."""
    folders = [str(package / "agent"), str(package / "wire")]
    try:
        subprocess.run(
            [environment.python, "-I", "-c", _COMPILE, *folders],
            env={**os.environ, "STEPSCOPE_ALWAYS": "0"},
            capture_output=True,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return  # slower, not wrong
