"""``stepscope lsp``: the checker in editors."""

from __future__ import annotations

import click

from stepscope.tables.errors import UsageError, install_command


@click.command(short_help="Serve an editor: findings and quick fixes.")
def lsp() -> None:
    """Serve an editor through the Language Server Protocol on standard input and output: diagnostics of `check`,
    quick fixes, and rule explanations on hover. Needs: pip install pygls.
    """
    try:
        from stepscope.check.editor.server import serve
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed; run: {install_command('lsp')}") from error
    serve()
