"""``stepscope ps`` and ``stepscope top``."""

from __future__ import annotations

import sys

import click


@click.command(short_help="List running jobs that are being measured.")
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object, schema stepscope.ps/1.")
def ps(as_json: bool) -> None:  # noqa: FBT001
    """List running jobs that are being measured, through run or enable; as root, those of all users.

    Rates cover the last few seconds, shares about a minute. Only what each job's sidecar publishes is read. Below the
    jobs: what is switched off, and the address of the page of enable --ui, if it is served.
    """
    from stepscope.collector.always_on import user_page
    from stepscope.launcher import jobs
    from stepscope.report import live
    from stepscope.use_cases import switching

    found = jobs.running()
    if as_json:
        sys.stdout.buffer.write(live.to_json([(job.status, job.user, job.state) for job in found]))
        return
    rows = [live.JobRow(status=job.status, user=job.user, state=job.state, name=job.name) for job in found]
    click.echo(live.table(rows, width=live.terminal_width()), nl=False)
    for line in switching.lines():
        click.echo(f"off       {line}")
    if page := user_page.address():
        click.echo(f"page      {page}")


@click.command(short_help="Watch a running job.")
@click.argument("job")
@click.option("--once", is_flag=True, help="Print it once, as text.")
def top(job: str, once: bool) -> None:  # noqa: FBT001
    """Watch JOB: the pid, session or script of a job that `stepscope ps` lists. q or Ctrl-C quits; the job continues.

    Without a terminal, prints plain text once a second until the job ends.
    """
    from stepscope.launcher import jobs
    from stepscope.use_cases import watch

    watch.watch(jobs.find(job), once=once)
