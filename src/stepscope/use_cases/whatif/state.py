"""The state of an experiment, in its folder: what was asked for, and the runs that are made. So it can be resumed.

The file is written whole after each run. The schedule is not in it: it is made again from the runs, whose times are
known, so that it comes to where it was.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from stepscope._version import __version__
from stepscope.launcher import mask
from stepscope.launcher.peers import Contacts
from stepscope.tables import layout
from stepscope.tables.errors import CaptureError, UsageError
from stepscope.use_cases.record import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "experiment.json"
SCHEMA = "stepscope.experiment/1"


class ExperimentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for. Runs count for another experiment only if all of it is the same."""

    command: tuple[str, ...]
    """The program's command line, secrets masked."""
    command_digest: str
    """SHA-256 of the command line as it was."""
    script_digest: str
    """SHA-256 of the script; "" if the command line names none."""
    folder: str
    """Working directory."""
    trials: tuple[str, ...]
    against: str
    """File, or full name of a commit; "" if there is none."""
    until_done: bool
    changed_results: bool
    whole: bool
    network: bool


class MadeRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that ended."""

    stage: str
    round: int
    kept: tuple[str, ...]
    trial: str
    wall_s: float
    session: str = ""
    """Name of its session; "" if the run failed."""
    why: str = ""
    """Why it failed."""
    contacts: Contacts | None = None
    """What it wanted to reach; null: unknown."""
    switched: bool = False
    """Whether the trial was switched on and off in it."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The file."""

    schema: str = SCHEMA
    version: str = __version__
    asked: ExperimentRequest
    rounds: int
    seconds: float
    runs: tuple[MadeRun, ...] = ()


def digest(words: Sequence[str]) -> str:
    """SHA-256 of a command line."""
    return hashlib.sha256(json.dumps(list(words)).encode()).hexdigest()


def script_digest(argv: Sequence[str]) -> str:
    """SHA-256 of the script of a command line; "" if it names none that can be read."""
    script = next((word for word in argv if word.endswith(".py")), "")
    try:
        return hashlib.sha256(Path(script).read_bytes()).hexdigest() if script else ""
    except OSError:
        return ""


def write(folder: Path, state: State) -> None:
    """Write the state, whole or not at all.

    Raises:
        CaptureError: it cannot be written.
    """
    try:
        layout.write_atomic(folder / NAME, msgspec.json.format(msgspec.json.encode(state), indent=1))
    except OSError as error:
        raise CaptureError(f"{folder / NAME} cannot be written: {error.strerror}") from error


def read(folder: Path) -> State:
    """The state in a folder.

    Raises:
        UsageError: there is none that can be read.
    """
    try:
        return msgspec.json.decode((folder / NAME).read_bytes(), type=State)
    except OSError:
        raise UsageError(f"--resume {folder}: no experiment is in it; expected a folder that whatif made") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"--resume {folder}: {NAME} cannot be read: {error}") from error


def command_of(asked: ExperimentRequest, given: Sequence[str], folder: Path) -> tuple[str, ...]:
    """The command line to resume with: the one that is given, else the one of the file.

    Raises:
        UsageError: another program was run, or the command line held a secret, which the file does not have.
    """
    wanted = tuple(given) or asked.command
    if digest(wanted) == asked.command_digest:
        return wanted
    if given:
        raise UsageError(f"--resume {folder}: its experiment is on another command: {shlex.join(asked.command)}")
    raise UsageError(
        f"--resume {folder}: secrets of its command line are not kept; give it again: stepscope whatif --resume "
        f"{shlex.quote(str(folder))} -- {shlex.join(asked.command)}"
    )


def masked(argv: Sequence[str]) -> tuple[str, ...]:
    """A command line as the file has it."""
    return tuple(mask.mask_command(argv))


def differences(before: ExperimentRequest, now: ExperimentRequest) -> list[str]:
    """What was asked for otherwise, in words."""
    return [text for name, text in _WORDS.items() if getattr(before, name) != getattr(now, name)]


_WORDS = {
    "command_digest": "the command",
    "script_digest": "the script, which has changed since",
    "folder": "the working directory",
    "trials": "--try",
    "against": "--against",
    "until_done": "--until-done",
    "changed_results": "--allow-changed-results",
    "whole": "--whole",
    "network": "--allow-network",
}


def resume_command(folder: Path) -> str:
    """The command that resumes."""
    return f"stepscope whatif --resume {shlex.quote(shown(folder))}"
