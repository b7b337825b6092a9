"""``stepscope view``."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.web import serve


@click.command(short_help="Serve sessions and running jobs: web page and REST.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[SESSION|FOLDER]...")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port; 0 for any free one. [default: 7330, or the next free one]"
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option(
    "--name", "names", multiple=True, metavar="HOST", help="Also accept this host name, such as a proxy's (repeatable)."
)
@click.option("--open", "open_", is_flag=True, help="Open the page in a browser.")
def view(paths: tuple[Path, ...], port: int | None, host: str, names: tuple[str, ...], *, open_: bool) -> None:
    """Serve a web page and a REST interface for finished sessions and for the running jobs that `stepscope ps` lists,
    until Ctrl-C. Without SESSION or FOLDER: the sessions in the current folder and those of enable.

    Requests need the token in the printed address. STEPSCOPE_TOKEN sets the token, for scripts; it is then not
    printed. Needs: pip install starlette uvicorn prometheus-client.
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
