"""``stepscope trace``."""

from __future__ import annotations

import click

from stepscope.cli.progress import Progress
from stepscope.model.api.capture_ask import DEFAULT_WAIT_S, DEFAULT_WHEN_WAIT_S, KINDS, MAX_STEPS


@click.command(short_help="Capture some steps of a running job.")
@click.argument("job")
@click.option("--steps", type=click.IntRange(1, MAX_STEPS), help="Number of steps. [default: 10; for a Session: 1 run]")
@click.option("--kind", type=click.Choice(KINDS), default=KINDS[0], show_default=True, help="What to record.")
@click.option(
    "--seconds",
    type=click.FloatRange(0.5, 60),
    help="Length of the recording, for all kinds but ops. [default: 5; memory: 10]",
)
@click.option("--ops/--no-ops", default=True, show_default=True, help="native: also take an op trace of the same time.")
@click.option(
    "--task", metavar="NAME", help="Treat calls of this task as the steps; use its name from `stepscope top`."
)
@click.option(
    "--every", type=click.FloatRange(min=0), metavar="SECONDS", help="Repeat at this interval until the job ends."
)
@click.option("--count", type=click.IntRange(min=1), help="Maximum number of repetitions.")
@click.option("--keep-raw", is_flag=True, help="Also keep the framework's own file.")
@click.option(
    "--wait",
    type=click.FloatRange(0, 3600),
    metavar="SECONDS",
    help="Wait this long for the steps, or the task, of a starting job. Without steps by then, one second of whatever "
    "runs is recorded. With --when: for the moment. "
    f"[default: {DEFAULT_WAIT_S:g}; with --when: {DEFAULT_WHEN_WAIT_S:g}]",
)
@click.option(
    "--when",
    metavar="CONDITION",
    help="Keep only a capture in which this happens: saving, epoch-end, retrace, slow-step, or the code of a detector "
    "whose part of the step it shows. Captures are repeated until then; what comes at a regular distance is aimed at.",
)
@click.option("--force", is_flag=True, help="Do not wait for the budget.")
@click.option("--alone", is_flag=True, help="Trace only this task, even if the job has several.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="Stop waiting after this time; the capture itself continues.",
)
def trace(job: str, timeout: float, **asked: str | float | None) -> None:
    """Record every op of some steps of JOB: the pid, session or script of a job that `stepscope ps` lists.

    The job needs no change and no restart, opens no port, and keeps running. The cost of the capture is measured
    against neighbouring steps, printed, and charged to the budget of `run --budget`.
    For a Session or MonitoredSession, the task's next run is traced in full.
    Where JOB is a task of a cluster, all tasks on this host trace the same steps, which begin some seconds later; with
    --clock-hosts of `run` or `enable` those of the other hosts too (--alone: only this one).

    With --when, a capture in which the condition does not hold is discarded. It is counted, and its cost is charged to
    the budget, which decides when the next one may follow (--force does not wait for that). If nothing is caught within
    --wait seconds, the exit code is 75.
    """
    from stepscope.use_cases import trace as use_case

    if asked.get("when"):
        use_case.check_when(asked)
    with Progress(f"waiting for the capture of {job}") as progress:

        def say(words: str) -> None:
            progress.tell(words)
            progress.say(words)

        text = use_case.trace(job, asked, say, timeout)
    click.echo(text, nl=False)
