"""``stepscope trace``."""

from __future__ import annotations

import click

from stepscope.model.api.capture_ask import DEFAULT_WAIT_S, KINDS, MAX_STEPS


@click.command(short_help="Capture some steps of a running job.")
@click.argument("job")
@click.option("--steps", type=click.IntRange(1, MAX_STEPS), help="How many. [default: 10; of a session 1 run]")
@click.option("--kind", type=click.Choice(KINDS), default=KINDS[0], show_default=True, help="What is recorded of them.")
@click.option("--seconds", type=click.FloatRange(0.5, 60), help="Of native stacks: how long. [default: 5]")
@click.option(
    "--ops/--no-ops", default=True, show_default=True, help="With native stacks: an op trace of the same time."
)
@click.option("--task", metavar="NAME", help="Calls of this task, as `stepscope top` names it, are the steps.")
@click.option("--every", type=click.FloatRange(min=0), metavar="SECONDS", help="Again and again, until the job ends.")
@click.option("--count", type=click.IntRange(min=1), help="How often at most.")
@click.option("--keep-raw", is_flag=True, help="Keep the framework's own file, too.")
@click.option(
    "--wait",
    type=click.FloatRange(0, 3600),
    default=DEFAULT_WAIT_S,
    show_default=True,
    metavar="SECONDS",
    help="For steps, or the task, of a job that starts; then a second of whatever runs is recorded.",
)
@click.option("--force", is_flag=True, help="Do not wait until the budget allows it.")
@click.option("--timeout", type=click.FloatRange(min=1), default=300, show_default=True, metavar="SECONDS")
def trace(job: str, timeout: float, **asked: str | float | None) -> None:
    """Record every op of some steps of JOB: the pid, session or script of a job that `stepscope ps` lists.

    The job needs no change and no restart, and goes on; nothing in it listens. What the capture cost it is measured
    against the steps beside it, printed, and counted against the budget of `run --budget`.
    A Session or MonitoredSession is asked for the full trace of the task's next run.
    """
    from stepscope.app import trace as use_case  # noqa: PLC0415 - --help needs none of it

    text = use_case.trace(job, asked, lambda words: click.echo(f"stepscope: {words}", err=True), timeout)
    click.echo(text, nl=False)
