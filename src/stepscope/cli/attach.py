"""``stepscope attach``."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.cli.progress import Progress


def _pid(_ctx: click.Context, _param: click.Parameter, value: str) -> int:
    """The number of a process.

    Raises:
        click.BadParameter: it is none.
    """
    if not (value.isascii() and value.isdigit()) or int(value) < 1:
        raise click.BadParameter(f"{value!r} is not a process id; expected a number, as of: pgrep -f {value!r}")
    return int(value)


@click.command(short_help="Examine a running process that was started without stepscope.")
@click.argument("pid", callback=_pid)
@click.option(
    "--seconds", type=click.FloatRange(8, 3600), default=20, show_default=True, help="How long to observe the process."
)
@click.option("--session", type=click.Path(path_type=Path), help="Directory of the new session.")
@click.option(
    "--report-json",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the report to this file, as JSON.",
)
@click.option(
    "--stacks",
    is_flag=True,
    help="Only print what its threads do now, with Python's stacks; no session is made.",
)
def attach(pid: int, seconds: float, session: Path | None, report_json: Path | None, *, stacks: bool) -> None:
    """Examine process PID (Python or not) that was started without stepscope and has been running for a while.

    The process is neither stopped nor changed: its counters are read from outside, and one window of native stacks is
    recorded with perf if permitted. This finds page faults, allocator problems and CPU contention; it does not see
    steps. Ctrl-C ends the observation, never the process, and the report is still printed. Its last lines are the
    functions that used the most CPU time. For a process that hangs, --stacks shows at once what its threads do.
    """
    from stepscope.use_cases import attach as use_case

    if stacks:
        from stepscope.use_cases import stack_shot

        click.echo(stack_shot.stacks(pid), nl=False)
        return
    options = use_case.AttachOptions(pid=pid, seconds=seconds, session=session, report_json=report_json)
    with Progress(f"observing {pid}") as progress:
        text = use_case.attach(options, progress.say)
    click.echo(text, err=True, nl=False)
