"""``stepscope attach``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(short_help="Look at a process that runs already, without stepscope.")
@click.argument("pid", type=click.IntRange(min=1))
@click.option("--seconds", type=click.FloatRange(8, 3600), default=20, show_default=True, help="How long to look.")
@click.option("--session", type=click.Path(path_type=Path), help="Directory of the new session.")
@click.option("--report-json", type=click.Path(path_type=Path, dir_okay=False), help="Copy the report here as JSON.")
def attach(pid: int, seconds: float, session: Path | None, report_json: Path | None) -> None:
    """Look at process PID, Python or not, that was started without stepscope and has been up for a while.

    It is neither stopped nor changed: its counters are read from outside, and one window of native stacks is recorded
    with perf where that may be. So page faults, allocator and CPU contention are found; steps are not seen.
    Ctrl-C ends the look, never the process, and the report still comes.
    """
    from stepscope.app import attach as use_case  # noqa: PLC0415 - --help needs none of it

    text = use_case.attach(use_case.AttachOptions(pid=pid, seconds=seconds, session=session, report_json=report_json))
    click.echo(text, err=True, nl=False)
