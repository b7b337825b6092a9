"""``stepscope import``: turn other tools' files into a session."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.cli.progress import Progress
from stepscope.report import op_trace_text
from stepscope.report.words import printable


@click.command("import", short_help="Make a session from other tools' traces.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The session to create. Default: named after the file."
)
def import_(files: tuple[Path, ...], output: Path | None) -> None:
    """Make one session from FILEs: xplane.pb of TensorFlow, JAX and Keras' TensorBoard callback; trace.json(.gz) of
    Chrome, TensorFlow and PyTorch; RunMetadata of TensorFlow 1; sampled stacks from perf script, folded stacks, pprof
    and speedscope. For a directory, the newest profile in it is read, or all traces of PyTorch's profiler. Files of
    several ranks of one job give one report that says for whom the others wait.
    """
    from stepscope.use_cases.importing import import_files

    with Progress(f"reading {', '.join(printable(file.name) for file in files)}"):
        done = import_files(files, output)
    for trace in done.traces:
        click.echo(op_trace_text.render(trace), nl=False)
    for text in done.notes:
        click.echo(f"note        {printable(text)}")
    for file in done.stacks:
        click.echo(f"stacks      {printable(op_trace_text.stacks_text(file))}")
    shown = "flame" if done.stacks and not done.traces else "report"
    click.echo(f"session     {done.session} · stepscope {shown} {done.session}")
