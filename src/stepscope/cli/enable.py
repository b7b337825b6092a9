"""``stepscope enable`` and ``stepscope disable``."""

from __future__ import annotations

import re
from pathlib import Path

import click

from stepscope.cli.key_file import CA_FILE, KEY_FILE
from stepscope.tables.errors import UsageError

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)I?B?", re.IGNORECASE)
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text} is not a size; expected a number with K, M, G or T, such as 2G")
    return int(float(match[1]) * (1 << _UNITS[match[2].upper()]))


def _share(text: str) -> float:
    match = _SHARE.fullmatch(text.strip())
    share = float(match[1]) / (100.0 if match[2] else 1.0) if match else 0.0
    if not 0.0 < share <= 1.0:
        raise UsageError(f"--share {text}: not a share of the jobs; expected more than 0% and at most 100%, such as 5%")
    return share


_PYTHON = click.option(
    "--python",
    metavar="PATH",
    help="The environment's Python. Default: that of the active environment, else the one that runs stepscope.",
)


@click.command(short_help="Measure every job of an environment.")
@_PYTHON
@click.option(
    "--sessions",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the sessions. Default: stepscope/sessions in XDG_STATE_HOME (~/.local/state) of the user who runs "
    "the job. STEPSCOPE_SESSIONS in the job's environment takes precedence.",
)
@click.option(
    "--quota", default="2G", show_default=True, metavar="SIZE", help="Disk quota for all sessions of one user."
)
@click.option(
    "--job-quota", default="256M", show_default=True, metavar="SIZE", help="Disk quota for one job's session."
)
@click.option(
    "--keep", default=14.0, show_default=True, metavar="DAYS", help="Delete finished sessions after this many days."
)
@click.option("--no-sources", is_flag=True, help="Do not store copies of the user's source files.")
@click.option(
    "--ui",
    "port",
    is_flag=False,
    flag_value="0",
    type=click.IntRange(0, 65_535),
    metavar="[PORT]",
    help="Also serve a web page with the jobs of each user, on that user's behalf: one server for each user and host, "
    "started now and with the first job, ended half an hour after the last one. Root's shows the jobs of all users. "
    "Default port: 7330, or the next free one. `stepscope ps` prints the address.",
)
@click.option(
    "--gather",
    default="",
    metavar="URL",
    help="Send each session there after its report, as `run --gather` does: a folder that all hosts share, "
    "file://FOLDER, http(s)://HOST:PORT of `stepscope gather serve`, or a store. `stepscope merge URL` joins what "
    "arrived; `enable --status` says what could not be sent.",
)
@click.option(
    "--fleet",
    default="",
    metavar="URL",
    help="Leave a part of each session there after its report, for `stepscope fleet`, as `run --fleet` does. "
    "`enable --status` says what could not be sent.",
)
@click.option("--fleet-sources", is_flag=True, help="With --fleet, as `run --fleet-sources`.")
@click.option(
    "--clock-hosts",
    default="",
    metavar="HOST[:PORT],...",
    help="Compare this host's clock with those of the other hosts while a job runs, and let one request trace "
    "all of them, as `run --clock-hosts` does.",
)
@KEY_FILE
@CA_FILE
@click.option(
    "--share",
    default="100%",
    show_default=True,
    metavar="SHARE",
    help="Measure only this share of the jobs, chosen by a hash of the scheduler's job id, else of the job's first "
    "process. All processes of a job decide alike.",
)
@click.option(
    "--again",
    is_flag=False,
    flag_value="",
    metavar="[PROGRAM]",
    help="Only measure again what `disable --now` switched off, or programs that stepscope switched off because they "
    "crashed or did not end while measured: one PROGRAM, or all of this user.",
)
@click.option("--status", is_flag=True, help="Only show whether it is enabled, and with which settings.")
def enable(
    python: str | None,
    sessions: Path | None,
    quota: str,
    job_quota: str,
    keep: float,
    port: int | None,
    gather: str,
    fleet: str,
    clock_hosts: str,
    key_file: Path | None,
    ca_file: Path | None,
    share: str,
    again: str | None,
    *,
    fleet_sources: bool,
    no_sources: bool,
    status: bool,
) -> None:
    """Measure every deep-learning process that an environment's Python starts from now on.

    Writes one file, stepscope-enable.pth, into its site-packages. Nothing is installed there and no job is changed. A
    process without TensorFlow, PyTorch, JAX or ONNX Runtime pays a few tenths of a millisecond at its start; jobs are
    measured by hooks and samplers only (levels 0 and 1). Jobs that are already running are not measured.
    STEPSCOPE_ALWAYS=0 excludes a process. List the measured jobs with: stepscope ps
    """
    from stepscope.use_cases import always_on, switching

    if again is not None:
        click.echo(switching.switch_on(again))
        return
    if status:
        click.echo(always_on.describe(python))
        return
    wanted = always_on.WantedSettings(
        sessions=sessions,
        quota_bytes=_size(quota),
        job_quota_bytes=_size(job_quota),
        keep_days=keep,
        sources=not no_sources,
        page_module=_page_module() if port is not None else "",
        page_port=port or 0,
        gather=gather,
        fleet=fleet,
        fleet_sources=fleet_sources,
        clock_hosts=clock_hosts,
        key_file=key_file,
        ca_file=ca_file,
        share=_share(share),
    )
    click.echo(always_on.enable(python, wanted))


def _page_module() -> str:
    from stepscope.web import listening, user_server

    listening.check_installed()
    return user_server.MODULE


@click.command(short_help="Undo enable.")
@_PYTHON
@click.option(
    "--ui",
    is_flag=True,
    help="Only end the web page of enable --ui: yours ends at once, and new jobs start none. Jobs are still measured.",
)
@click.option(
    "--now",
    is_flag=False,
    flag_value="",
    metavar="[PROGRAM]",
    help="Only switch measuring off for this user within 10 s, in running jobs too, under enable and run: for one "
    "program (a script, its name, a module, or a pattern), or for all. Environments stay enabled.",
)
def disable(python: str | None, now: str | None, *, ui: bool) -> None:
    """Remove the file that enable wrote, so that the environment's site-packages are as before.

    Running jobs are still measured until they end; sessions stay where they are.
    """
    from stepscope.use_cases import always_on, switching

    if now is not None:
        click.echo(switching.switch_off(now))
        return
    click.echo(always_on.end_page(python) if ui else always_on.disable(python))
