"""``stepscope attach``."""

from __future__ import annotations

from pathlib import Path

import click


class _Pid(click.ParamType):
    name = "pid"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of a process.

        Raises:
            click.BadParameter: it is none.
        """
        text = str(value)
        if not (text.isascii() and text.isdigit()) or int(text) < 1:
            self.fail(
                f"{text!r} is not a process id; expected a number, as in `ps`, or of: pgrep -f {text!r}", param, ctx
            )
        return int(text)


@click.command(short_help="Examine a running process that was started without stepscope.")
@click.argument("pid", type=_Pid())
@click.option(
    "--seconds", type=click.FloatRange(8, 3600), default=20, show_default=True, help="How long to observe the process."
)
@click.option("--session", type=click.Path(path_type=Path), help="Directory of the new session.")
@click.option(
    "--report-json",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the report to this file, as JSON.",
)
def attach(pid: int, seconds: float, session: Path | None, report_json: Path | None) -> None:
    """Examine process PID (Python or not) that was started without stepscope and has been running for a while.

    The process is neither stopped nor changed: its counters are read from outside, and one window of native stacks is
    recorded with perf if permitted. This finds page faults, allocator problems and CPU contention; it does not see
    steps. Ctrl-C ends the observation, never the process, and the report is still printed.
    """
    from stepscope.app import attach as use_case  # noqa: PLC0415 - --help needs none of it

    text = use_case.attach(use_case.AttachOptions(pid=pid, seconds=seconds, session=session, report_json=report_json))
    click.echo(text, err=True, nl=False)
