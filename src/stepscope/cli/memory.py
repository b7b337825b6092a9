"""``stepscope memory``."""

from __future__ import annotations

import shutil

import click


@click.command(short_help="Draw an address space: huge pages, mappings, faults.")
@click.argument("target", metavar="PID|SESSION")
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 3600),
    default=3,
    show_default=True,
    help="For a process: time between the two snapshots that measure faults and growth.",
)
@click.option("--json", "as_json", is_flag=True, help="For programs: a list of objects, schema stepscope.memory/1.")
def memory(target: str, seconds: float, *, as_json: bool) -> None:
    """Show the memory of process PID, or of the processes recorded in SESSION.

    Shows how much memory is in huge pages, how much more could be, and why it is not; sizes and layout of mappings;
    page faults, page tables, growth and kernel activity for huge pages; and a drawing of the address space. A process
    is only read from outside, never stopped.
    """
    from stepscope.use_cases import memory as use_case

    maps = use_case.memory(target, seconds)
    if as_json:
        click.echo(use_case.to_json(maps))
    else:
        click.echo(use_case.to_text(maps, width=shutil.get_terminal_size((120, 24)).columns), nl=False)
