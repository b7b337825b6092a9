"""What is asked of an experiment, and what of it is refused before anything runs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stepscope.experiments import curves, plan, schedule
from stepscope.launcher import apply
from stepscope.launcher.session_place import session_stem
from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES
from stepscope.sandbox import isolation
from stepscope.tables.errors import CaptureError, UsageError
from stepscope.use_cases import switching
from stepscope.use_cases.record import shown
from stepscope.use_cases.whatif import slopes, state, values

if TYPE_CHECKING:
    from collections.abc import Callable

OPTION = "--try"
SUFFIX = ".whatif"
"""Suffix of the folder that holds the sessions."""
CLUSTER = ("TF_CONFIG", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "HOROVOD_RANK", "HOROVOD_SIZE", "WORLD_SIZE")
"""Variables that a worker of a cluster has: one worker alone cannot be tried."""
ROUNDS = 5
SECONDS, SECONDS_UNTIL_DONE = 180.0, 900.0
"""Time for all runs: a step of ``--until-done`` takes as long as an experiment without it."""


class WhatIfOptions(Struct, frozen=True, kw_only=True):
    """Options of the command."""

    argv: tuple[str, ...]
    """The program's command line, from ``record.job_command``; () if it is that of ``resume``."""
    trials: tuple[str, ...] = ()
    """None: those that a first run suggests, or ``against``. Of ``curves.NAMES`` without an argument: a curve."""
    against: str = ""
    """Another version of the script, a file or a commit: is it faster? "": none."""
    until_done: bool = False
    """Whether the best gain is kept and what is left is looked at again, until there is none."""
    changed_results: bool = False
    """Whether ``until_done`` keeps gains that change what the job computes."""
    rounds: int | None = None
    """Maximum number of rounds; None: ``ROUNDS``, or those of ``resume``."""
    seconds: float | None = None
    """Time for all runs; None: the default. With ``trials`` and without ``until_done``, only rounds count."""
    folder: Path | None = None
    """None: named after the script, in the current directory."""
    resume: Path | None = None
    """Folder of an experiment that continues where it was."""
    whole: bool = False
    """Whether each run goes on to the program's own end."""
    network: bool = False
    """Whether the job may reach the network."""
    consent: bool = False
    """Whether the job may write where it writes, if the machine cannot throw that away."""

    @property
    def curves(self) -> tuple[str, ...]:
        """Trials that are curves."""
        return tuple(dict.fromkeys(name for name in self.trials if name in curves.NAMES))

    @property
    def singles(self) -> tuple[str, ...]:
        """All other trials."""
        return tuple(name for name in self.trials if name not in curves.NAMES)

    @property
    def most_rounds(self) -> int:
        """Maximum number of rounds."""
        return ROUNDS if self.rounds is None else self.rounds

    @property
    def most_s(self) -> float:
        """Time for all runs."""
        if self.seconds is not None:
            return self.seconds
        return SECONDS_UNTIL_DONE if self.until_done else SECONDS


def check(options: WhatIfOptions) -> None:
    """Refuse what cannot be done.

    Raises:
        UsageError: an unknown trial, a missing library, too few rounds, options that exclude each other, a cluster, or
            measuring is switched off.
    """
    why = switching.why(options.argv, harmed=False)
    if why:
        raise UsageError(why)
    if options.most_rounds < schedule.MIN_ROUNDS:
        raise UsageError(f"--rounds {options.most_rounds}: an interval needs {schedule.MIN_ROUNDS} or more")
    plan.named(options.singles)
    apply.environment([one for one in options.singles if one in ENVIRONMENT_REMEDIES], os.environ, option=OPTION)
    if options.until_done and options.against:
        raise UsageError("--until-done and --against: another program cannot be kept; expected one of them")
    if options.until_done and options.curves:
        raise UsageError(f"--until-done keeps single changes, and {options.curves[0]} is a curve; expected one of them")
    if options.until_done and values.NAME in options.singles:
        raise UsageError(f"--until-done keeps gains, and {values.NAME} has none; expected one of them")
    if options.until_done and slopes.of(options.singles):
        raise UsageError("--until-done keeps gains, and slopes has none; expected one of them")
    if options.whole and slopes.of(options.singles):
        raise UsageError("--whole: slopes ends when its blocks do; expected one of them")
    if options.changed_results and not options.until_done:
        raise UsageError("--allow-changed-results: only --until-done keeps anything; expected both")
    found = [name for name in CLUSTER if os.environ.get(name)]
    if found:
        raise UsageError(f"{found[0]} is set: one worker of a cluster cannot be tried alone; unset it to try this one")


def isolated(options: WhatIfOptions, folder: Path, say: Callable[[str], object]) -> isolation.Isolation | None:
    """How runs leave nothing behind; None with the user's consent.

    Raises:
        UsageError: the machine cannot isolate a job, and there is no consent.
    """
    wanted = isolation.Isolation(keep=(folder,), network=options.network)
    problem = isolation.problem(wanted)
    if not problem:
        return wanted
    if not options.consent:
        raise UsageError(
            f"what the runs write cannot be thrown away here: {problem}; "
            "with --yes they write where the program writes, and reach the network"
        )
    say(f"the runs write where the program writes and reach the network; trackers are set offline: {problem}")
    return None


def asked(options: WhatIfOptions, against: str) -> state.ExperimentRequest:
    """What must be the same for runs to count. ``against``: a file, or the full name of a commit."""
    return state.ExperimentRequest(
        command=state.masked(options.argv),
        command_digest=state.digest(options.argv),
        script_digest=state.script_digest(options.argv),
        folder=str(Path.cwd()),
        trials=options.trials,
        against=against,
        until_done=options.until_done,
        changed_results=options.changed_results,
        whole=options.whole,
        network=options.network,
    )


def resumed(options: WhatIfOptions) -> WhatIfOptions:
    """The options of the experiment that is resumed; without one, as they are.

    Time and rounds that are given replace those of the experiment; everything else given must be the same.

    Raises:
        UsageError: the folder holds no experiment.
    """
    folder = options.resume or (options.folder if _holds_experiment(options.folder) else None)
    if folder is None:
        return options
    before = state.read(folder)
    kept = before.asked
    return replace(
        options,
        argv=state.command_of(kept, options.argv, folder),
        trials=options.trials or kept.trials,
        against=options.against or kept.against,
        until_done=options.until_done or kept.until_done,
        changed_results=options.changed_results or kept.changed_results,
        rounds=options.rounds or before.rounds,
        seconds=options.seconds or before.seconds,
        resume=folder,
        whole=options.whole or kept.whole,
        network=options.network or kept.network,
    )


def _holds_experiment(folder: Path | None) -> bool:
    return folder is not None and (folder / state.NAME).is_file()


def begun(options: WhatIfOptions, now: state.ExperimentRequest) -> tuple[Path, state.State]:
    """The folder and the state of the experiment: a new one, or that which is resumed.

    Raises:
        UsageError: the folder is taken, or what is resumed was asked for otherwise.
        CaptureError: there is no place for it.
    """
    fresh = state.State(asked=now, rounds=options.most_rounds, seconds=options.most_s)
    if options.resume is None:
        folder = _new_folder(options)
        state.write(folder, fresh)
        return folder, fresh
    before = state.read(options.resume)
    different = state.differences(before.asked, now)
    if different:
        raise UsageError(f"--resume {shown(options.resume)}: its runs do not count with another {', '.join(different)}")
    resumed_state = state.State(asked=now, rounds=fresh.rounds, seconds=fresh.seconds, runs=before.runs)
    return options.resume.absolute(), resumed_state


def _new_folder(options: WhatIfOptions) -> Path:
    stem = f"{session_stem(options.argv)}-{time.strftime('%m%d-%H%M')}"
    wanted = options.folder
    for number in range(1, 1000):
        path = wanted or Path.cwd() / f"{stem}{f'-{number}' if number > 1 else ''}{SUFFIX}"
        try:
            path.mkdir(parents=wanted is not None)
        except FileExistsError:
            if wanted is None:
                continue
            raise UsageError(f"--folder {wanted}: it already exists; expected a new folder") from None
        except OSError as error:
            raise CaptureError(f"{path} cannot hold sessions: {error.strerror}; choose --folder") from error
        return path.absolute()
    raise CaptureError(f"there are already a thousand folders {stem}*; choose another with --folder")
