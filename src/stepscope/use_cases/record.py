"""The use case ``run``: run a job measured and show what was found.

Nothing here imports numpy, pyarrow or rich before the job has ended.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.agent.payload import PAYLOAD
from stepscope.collector.captures import budget
from stepscope.launcher import launch
from stepscope.tables.errors import SessionError, TargetError, UsageError
from stepscope.use_cases import switching, unmeasured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.sessions.fleet.sending import Destination

REPORT_TEXT = "report.txt"
REPORT_JSON = "report.json"
_FIRST_LINE = 4096
"""Bytes read of a file to see what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """Options of the command."""

    argv: tuple[str, ...]
    """The job's command line, from ``job_command``."""
    session: Path | None = None
    report_json: Path | None = None
    budget: str = ""
    keep_raw: bool = False
    sources: bool = True
    quiet: bool = False
    verbose: bool = False
    apply: tuple[str, ...] = ()
    beside: launch.CompanionProcess | None = None
    clock_hosts: str = ""
    """HOST[:PORT],... of all hosts of the job, whose clocks are compared; empty: none."""
    gather: str = ""
    """Where the session is sent after its report; empty: nowhere."""
    fleet: str = ""
    """Where a part of the session is left after its report; empty: nowhere."""
    fleet_sources: bool = False
    """Whether that part tells arguments and the text of lines."""
    key_file: Path | None = None
    """File with the key that those hosts, or the server of ``gather`` or ``fleet``, share."""
    ca_file: Path | None = None
    """File with the authorities that the certificate of that server may be from; None: those of this host."""
    measure: bool = False
    """Whether a program is measured that came to harm while it was."""


def job_command(words: Sequence[str], *, module: str | None = None, verbatim: bool = False) -> tuple[str, ...]:
    """The job's command line: a script or a module for Python, or any command as it is.

    Without ``--``, too, words are a command if the first is a program and no Python script: ``run python train.py``.

    Args:
        words: the user's words: script and arguments, the module's arguments, or the command.
        module: the module of ``run -m``.
        verbatim: whether the words followed ``--``.

    Raises:
        UsageError: there is nothing to run.
        TargetError: the script does not exist.
    """
    if module is not None:
        return (python_of_job(), "-m", module, *words)
    if not words:
        raise UsageError("nothing to run; expected: stepscope run train.py [args], run -m module, or run -- command")
    if verbatim:
        return tuple(words)
    script = words[0]
    if _is_program(script):
        here = os.sep not in script and Path(script).exists()
        return (f"{os.curdir}{os.sep}{script}" if here else script, *words[1:])
    if script != "-" and not os.path.exists(script):  # noqa: PTH110
        raise TargetError(
            f"cannot run {script}: no such file in {_cwd()}; expected a Python script "
            "(for any other command: stepscope run -- command)"
        )
    return (python_of_job(), *words)


def _is_program(word: str) -> bool:
    """Whether a word is a program that no Python can read: one of PATH, a binary, a script of another language."""
    if not Path(word).exists():
        return os.sep not in word and shutil.which(word) is not None
    if not Path(word).is_file() or not os.access(word, os.X_OK):
        return False
    try:
        with Path(word).open("rb") as file:
            first = file.readline(_FIRST_LINE)
    except OSError:
        return False
    return first.startswith(b"\x7fELF") or (first.startswith(b"#!") and b"python" not in first)


def _cwd() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return "the current directory, which no longer exists"


def python_of_job() -> str:
    """The user's Python: that of the active environment, else the one that runs stepscope."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = os.environ.get(variable)
        if prefix and os.path.realpath(prefix) != os.path.realpath(sys.prefix):
            candidate = str(Path(prefix) / "bin" / "python")
            if os.access(candidate, os.X_OK):
                return candidate
    return sys.executable


def record(options: RecordOptions) -> int:
    """Run the job and print the report; return the job's exit code, negative for a signal.

    Raises:
        StepscopeError: the job was not started.
    """
    share = budget.parse(options.budget or budget.DEFAULT)
    why = switching.why(options.argv, harmed=not options.measure)
    if why:
        _line(f"stepscope: {why}; the job runs as without stepscope")
        unmeasured.become(options.argv)
    clocks = None
    if options.gather or options.fleet or options.clock_hosts or options.key_file or options.ca_file:
        from stepscope.sessions.gathering import asked  # most jobs run on one host

        clocks = asked.check(options.gather, options.clock_hosts, options.key_file, options.ca_file, options.fleet)
    outcome = launch.run(
        launch.LaunchOptions(
            argv=options.argv,
            payload=PAYLOAD,
            session=options.session,
            sources=options.sources,
            budget=options.budget,
            first_look_ns=budget.first_look_ns(share),
            keep_raw=options.keep_raw,
            apply=options.apply,
            beside=options.beside,
            clocks=clocks,
        )
    )
    try:
        _show(options, outcome)
        _gather(options, outcome)
        _leave_part(options, outcome)
    except BrokenPipeError:
        return outcome.exit_code
    return outcome.exit_code


def _gather(options: RecordOptions, outcome: launch.Outcome) -> None:
    """Send the session to where those of all hosts are gathered; whatever becomes of that, the job is done."""
    if not options.gather or outcome.session is None or outcome.interrupted:
        return
    from stepscope.sessions.gathering import sending

    arrived, line = sending.outcome(outcome.session, options.gather, options.key_file, shown, ca_file=options.ca_file)
    if not (arrived and options.quiet):
        _line(f"gather    {line}" if not options.quiet else f"stepscope: {line}")


def _leave_part(options: RecordOptions, outcome: launch.Outcome) -> None:
    """Leave a part of the session for questions about many; whatever becomes of that, the job is done."""
    if not options.fleet or outcome.session is None or outcome.interrupted:
        return
    from stepscope.sessions.fleet import sending

    arrived, line = sending.outcome(outcome.session, _destination(options), shown(outcome.session))
    if not (arrived and options.quiet):
        _line(f"fleet     {line}" if not options.quiet else f"stepscope: fleet: {line}")


def _destination(options: RecordOptions) -> Destination:
    from stepscope.sessions.fleet import sending

    return sending.Destination(
        url=options.fleet, key_file=options.key_file, ca_file=options.ca_file, sources=options.fleet_sources
    )


def _show(options: RecordOptions, outcome: launch.Outcome) -> None:
    for message in outcome.messages:
        _line(f"stepscope: {message}")
    if outcome.session is None:
        return
    if outcome.interrupted:
        _line(f"stepscope: the report is still being written, to {shown(outcome.session / REPORT_TEXT)}")
        return
    if not options.quiet:
        text = _report_text(outcome.session, verbose=options.verbose)
        _line(text.rstrip("\n") if text else f"stepscope: session {shown(outcome.session)}")
        _others(outcome.session, verbose=options.verbose)
    if options.report_json is not None:
        copy_json(outcome.session / REPORT_JSON, options.report_json)


def _others(session: Path, *, verbose: bool) -> None:
    """The joint report of all members, if this one ended last on its host; else where it will be, or how to make it."""
    from stepscope.sessions import merge

    try:
        joint = merge.joint_of(session)
    except SessionError:  # the line above has said where the session is
        return
    if joint is not None:
        _line("")
        _line(_report_text(joint, verbose=verbose).rstrip("\n"))
        return
    found = merge.offer(session, shown)
    if found:
        _line(f"members   {found}")


def shown(path: Path) -> str:
    """A path relative to the current directory, if it is below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (OSError, ValueError):
        return str(path)


def _line(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _report_text(session: Path, *, verbose: bool) -> str:
    """The report for this terminal, or all of it; "" if there is none."""
    import msgspec

    from stepscope.model.report.report import Report
    from stepscope.report import terminal

    try:
        report = msgspec.json.decode((session / REPORT_JSON).read_bytes(), type=Report)
    except (OSError, msgspec.DecodeError):
        return ""
    return terminal.render(
        report,
        color=sys.stderr.isatty() and not os.environ.get("NO_COLOR"),
        width=shutil.get_terminal_size((120, 24)).columns,
        session_path=shown(session),
        html_path=shown(session / "report.html"),
        verbose=verbose,
    )


def copy_json(source: Path, target: Path) -> None:
    """Copy a report; print one line to stderr if that fails."""
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        _line(f"stepscope: {target} could not be written: {error.strerror or error}")
