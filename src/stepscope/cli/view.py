"""``stepscope view``."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.web import serve


@click.command(short_help="Serve sessions and running jobs: page and REST.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[SESSION|FOLDER]...")
@click.option("--port", type=click.IntRange(0, 65535), help="0: any free one. [default: 7330, or the next free one]")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option(
    "--name", "names", multiple=True, metavar="HOST", help="Answer to this host name, too (may be repeated): a proxy's."
)
@click.option("--open", "open_", is_flag=True, help="Open the page in a browser.")
def view(paths: tuple[Path, ...], port: int | None, host: str, names: tuple[str, ...], *, open_: bool) -> None:
    """Serve the page and the REST interface over sessions at rest and over the running jobs that `stepscope ps` lists,
    until Ctrl-C. Without SESSION or FOLDER: the sessions of this folder, and those of enable.

    Only who knows the token in the printed address gets an answer. STEPSCOPE_TOKEN sets it, for scripts; it is not
    printed then. Needs the extra: pip install 'stepscope[ui]'.
    """
    options = serve.ServeOptions(
        paths=paths,
        host=host,
        port=port,
        names=names,
        opened=serve.open_browser if open_ else None,
        say=click.echo,
    )
    serve.serve(options)
