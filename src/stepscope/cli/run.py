"""``stepscope run``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stepscope.cli.job_command import UI, JobCommand
from stepscope.cli.key_file import CA_FILE
from stepscope.web import beside


def _beside(port: str | None) -> beside.BesideJob | None:
    return None if port is None else beside.prepare(port)


@click.command(
    cls=JobCommand,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    short_help="Measure a job and report why it is slow.",
)
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")
@click.option("--session", type=click.Path(path_type=Path), help="Directory of the new session.")
@click.option(
    "--report-json",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the report to this file, as JSON.",
)
@click.option(
    "--budget",
    default="1%",
    show_default=True,
    metavar="SHARE",
    help="Share of the job's time that captures (op traces) may cost; they are spaced accordingly. 0% allows only "
    "those that `stepscope trace` requests. The basic measurement has separate limits.",
)
@click.option("--keep-raw", is_flag=True, help="Keep the framework profiler's files from which captures are read.")
@click.option(
    "--apply",
    "remedies",
    multiple=True,
    metavar="REMEDY",
    help="Set the environment variables of a finding's remedy for the job (repeatable); nothing else is changed.",
)
@click.option(
    UI,
    "port",
    metavar="[PORT]",
    help="Serve the web page and REST interface of `stepscope view` while the job runs, and print their address first. "
    "PORT 0: any free port; default: 7330, or the next free one. The server stops when the job ends, or a minute after "
    "its last request.",
)
@click.option(
    "--clock-hosts",
    default="",
    metavar="HOST[:PORT],...",
    help="Compare this host's clock with those of the job's other hosts. Give the same list on each, the reference "
    "first. The collector of each host listens at its own entry (UDP; default port 7331) and answers those that have "
    "the key. One `stepscope trace` then traces the same steps on all of them.",
)
@click.option(
    "--gather",
    default="",
    metavar="URL",
    help="Send the session there when the job has ended and its report is shown: a folder that all hosts share, "
    "file://FOLDER, http(s)://HOST:PORT of `stepscope gather serve`, or a store (s3://, gs:// ...; extra `fleet`). "
    "`stepscope merge URL` joins what arrived.",
)
@click.option(
    "--fleet",
    default="",
    metavar="URL",
    help="Leave a part of the session there after its report, for `stepscope fleet`: a folder that hosts share, "
    "file://FOLDER, http(s)://HOST:PORT of `stepscope gather serve`, or a store (s3://, gs:// ...; extra `fleet`).",
)
@click.option(
    "--fleet-sources",
    is_flag=True,
    help="With --fleet: tell the command's arguments and the text of the lines, too. Secrets are masked.",
)
@click.option(
    "--key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with the key that the hosts of --clock-hosts, or the server of --gather or --fleet, share: at least 16 "
    "bytes, readable by its owner only.",
)
@CA_FILE
@click.option("--no-sources", is_flag=True, help="Do not store copies of the user's source files.")
@click.option(
    "--measure",
    is_flag=True,
    help="Also measure a program that crashed or did not end when it was measured before; without this option it runs "
    "unmeasured. What `stepscope disable --now` switched off stays off.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no report at the end.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Print the whole report, not only twelve lines, and every reason why detectors could not decide.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run(
    ctx: click.Context,
    *,
    module: str | None,
    session: Path | None,
    report_json: Path | None,
    budget: str,
    keep_raw: bool,
    remedies: tuple[str, ...],
    port: str | None,
    clock_hosts: str,
    gather: str,
    fleet: str,
    fleet_sources: bool,
    key_file: Path | None,
    ca_file: Path | None,
    no_sources: bool,
    measure: bool,
    quiet: bool,
    verbose: bool,
    command: tuple[str, ...],
) -> None:
    """Measure a job and report why it is slow.

    \b
    stepscope run train.py [ARGS]...      a Python script
    stepscope run -m package [ARGS]...    a Python module
    stepscope run -- COMMAND [ARGS]...    any command, such as ./train.sh or another Python

    The job keeps its terminal, exit code and signals. The report goes to stderr when the job has ended.
    """  # noqa: D301 - \b is click's mark for lines that are not rewrapped
    from stepscope.launcher import launch
    from stepscope.use_cases import record

    options = record.RecordOptions(
        argv=record.job_command(command, module=module, verbatim=ctx.meta["verbatim"]),
        session=session,
        report_json=report_json,
        budget=budget,
        keep_raw=keep_raw,
        sources=not no_sources,
        measure=measure,
        quiet=quiet,
        verbose=verbose,
        apply=remedies,
        beside=_beside(port),
        clock_hosts=clock_hosts,
        gather=gather,
        fleet=fleet,
        fleet_sources=fleet_sources,
        key_file=key_file,
        ca_file=ca_file,
    )
    exit_code = record.record(options)
    sys.stdout.flush()
    launch.die_like(exit_code)
