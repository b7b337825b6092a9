"""Cells of notebooks as places: no process's number, and no command that needs it."""

from __future__ import annotations

import msgspec
import pytest
from tests.derive.sessions import MS, Job
from tests.report.samples import finding

from stepscope.derive.python import notebook_cells
from stepscope.experiments import proofs
from stepscope.tables.place import Place


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("/tmp/ipykernel_22924/253955286.py", "notebook cell 253955286"),
        ("/var/folders/x/T/ipykernel_7/12.py", "notebook cell 12"),
        (r"C:\Users\me\AppData\Local\Temp\ipykernel_99/4051.py", "notebook cell 4051"),
        ("<ipython-input-3-0a1b2c3d4e5f>", "notebook cell In [3]"),
        ("/home/me/ipykernel_tools/train.py", "/home/me/ipykernel_tools/train.py"),
        ("train.py", "train.py"),
        ("<string>", "<string>"),
    ],
)
def test_cells_are_named_alike_in_every_run(file: str, said: str) -> None:
    """The kernel's process is no part of the name; files are as they were."""
    assert notebook_cells.named(file, {}) == (said, 0)


WHERE = (
    "import sys\ndef where():\n    return sys._getframe(1).f_code.co_filename, sys._getframe(1).f_lineno\n"
    "print('W',*where())"
)


@pytest.mark.parametrize(
    ("text", "number", "line", "cell_line"),
    [
        (
            WHERE,
            "2990152713",
            4,
            4,
        ),
        ("\n\n\nprint('W',*where())\n", "1162847773", 1, 4),
        ("%%capture out\nx = where()\n", "517778632", 1, 2),
        ("%%capture out\n\n\nx = where()", "1733248420", 1, 4),
        ("# \u00fcmlaut \u2603\n%matplotlib --list\nprint('W',*where())", "3509699385", 3, 3),
        ("  print('W',*where())\n  y=1", "2311522761", 1, 1),
        ("def f():\n    return where()\n!echo hi\nz = !echo ho\nprint('W',*f())", "2359956997", 2, 2),
    ],
)
def test_hashes_and_lines_are_the_kernel_s(text: str, number: str, line: int, cell_line: int) -> None:
    """Numbers and lines of frames in a kernel of ipykernel 7.4.0 with IPython 9.18.1, which printed them."""
    above = {notebook_cells.hash_of(body): lines for body, lines in notebook_cells.compiled(text)}
    assert line + above[number] == cell_line


def test_places_of_a_view_name_cells() -> None:
    """Every place that a report prints goes through the view."""
    job = Job()
    job.function().every(100 * MS, 40, dur=90 * MS)
    assert job.view().place("/tmp/ipykernel_1/7.py", 3, function="slow") == Place(
        file="notebook cell 7", line=3, function="slow"
    )


@pytest.mark.parametrize("template", [proofs.STUB, proofs.LINES, proofs.GRAPH_FUNCTION])
@pytest.mark.parametrize("cell", ["notebook cell 7", "notebook cell In [3]", "train.ipynb cell 3"])
def test_no_trial_names_a_cell(template: str, cell: str) -> None:
    """A trial finds its function by the file, which no other run has."""
    for file, none in ((cell, True), ("train.py", False)):
        found = msgspec.structs.replace(finding("INP002"), where=(Place(file=file, line=3, function="f"),))
        assert (proofs.filled(template, found) == "") is none
