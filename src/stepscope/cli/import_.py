"""``stepscope import``: other tools' files become a session."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.reports import op_trace_text
from stepscope.reports.words import printable


@click.command("import", short_help="Make a session of other tools' traces.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The session to make; else named by the file.")
def import_(files: tuple[Path, ...], output: Path | None) -> None:
    """Make one session of FILEs: xplane.pb of TensorFlow, JAX and Keras' TensorBoard callback, trace.json(.gz) of
    Chrome, TensorFlow and PyTorch, RunMetadata of TensorFlow 1; sampled stacks as perf script, folded stacks, pprof and
    speedscope have them. A directory stands for the newest profile in it.
    """
    from stepscope.app.importing import import_files  # noqa: PLC0415 - numpy and pyarrow: not for --help

    done = import_files(files, output)
    for trace in done.traces:
        click.echo(op_trace_text.render(trace), nl=False)
    for text in done.notes:
        click.echo(f"note        {printable(text)}")
    for profile in done.stacks:
        click.echo(
            f"stacks      {profile.event or 'samples'} · {len(profile.samples):,} rows, {profile.total:,.0f} in all"
        )
    shown = "flame" if done.stacks and not done.traces else "report"
    click.echo(f"session     {done.session} · stepscope {shown} {done.session}")
