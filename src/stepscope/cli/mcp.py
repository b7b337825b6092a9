"""``stepscope mcp``."""

from __future__ import annotations

import click

from stepscope.tables.errors import UsageError, install_command


@click.command(short_help="Serve a coding agent: diagnose, look, prove, check.")
@click.option(
    "--allow-run",
    is_flag=True,
    help="Let the client run commands: diagnose records new runs, prove makes trials. Without it, sessions and sources "
    "are only read.",
)
def mcp(*, allow_run: bool) -> None:
    """Serve a coding agent through the Model Context Protocol on standard input and output: four tools, whose answers
    mark all text of a job as untrusted (docs/agents.md). Needs: pip install mcp.
    """
    try:
        from stepscope.mcp.server import serve
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed; run: {install_command('mcp')}") from error
    serve(allow_run=allow_run)
