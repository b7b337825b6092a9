"""``stepscope doctor``."""

from __future__ import annotations

import os
import shutil
import sys

import click


@click.command(short_help="Check the machine and the environment, with no job.")
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object, schema stepscope.doctor/1.")
@click.option(
    "--python",
    metavar="PATH",
    help="The Python whose packages are looked at. Default: that of the active environment, else the one that runs "
    "stepscope.",
)
@click.option(
    "--no-import", is_flag=True, help="Do not import TensorFlow there: some seconds less, and what it says is missing."
)
def doctor(*, as_json: bool, python: str | None, no_import: bool) -> int:
    """Check this machine and a Python's packages for what makes jobs slow or hides why.

    Settings are read and nothing is changed. Each line: ok, note (worth knowing), CHANGE, or blind (what could not be
    looked at, with the command that would allow it). Exit code: 0, or 1 where something is to be changed.
    """
    from stepscope.app import doctor as use_case  # noqa: PLC0415 - --help needs none of it

    report = use_case.doctor(use_case.DoctorOptions(python=python, load=not no_import))
    if as_json:
        click.echo(use_case.to_json(report))
    else:
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        click.echo(use_case.to_text(report, color=color, width=shutil.get_terminal_size((120, 24)).columns), nl=False)
    return use_case.exit_code(report)
