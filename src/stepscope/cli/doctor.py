"""``stepscope doctor``."""

from __future__ import annotations

import os
import shutil
import sys

import click


@click.command(short_help="Check the machine and the environment, without a job.")
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object, schema stepscope.doctor/1.")
@click.option(
    "--python",
    metavar="PATH",
    help="The Python whose packages are checked. Default: that of the active environment, else the one that runs "
    "stepscope.",
)
@click.option(
    "--no-import", is_flag=True, help="Do not import TensorFlow there: saves some seconds, but skips what it reports."
)
@click.option(
    "--calibrate",
    is_flag=True,
    help="Instead of the checks, measure in some 8 s what this machine reaches at best (products, memory, a small op) "
    "and what a TLB miss costs, and keep it: reports explain the speed of ops by it. Not while a job is measured.",
)
def doctor(*, as_json: bool, python: str | None, no_import: bool, calibrate: bool) -> int:
    """Check this machine and a Python's packages for settings that make jobs slow or prevent diagnosis.

    Settings are only read, never changed. Each line is marked ok, note (worth knowing), CHANGE, or blind (could not be
    checked; the line names the command that allows it). Exit code: 0, or 1 if something should be changed.
    """
    from stepscope.use_cases import doctor as use_case

    if calibrate:
        click.echo(use_case.calibrate(python), nl=False)
        return 0
    report = use_case.doctor(use_case.DoctorOptions(python=python, load=not no_import))
    if as_json:
        click.echo(use_case.to_json(report))
    else:
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        click.echo(use_case.to_text(report, color=color, width=shutil.get_terminal_size((120, 24)).columns), nl=False)
    return use_case.exit_code(report)
