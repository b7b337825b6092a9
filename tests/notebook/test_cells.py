"""The cells of a kernel as one script, and places in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.derive.python import notebook_cells
from stepscope.notebook import cells

IMPORTS = "import helper\n\ndef twice(x):\n    return 2 * x"
FAILED = "1 / 0"
SHELL = "!ls\nvalue = twice(3)\nget_ipython().run_line_magic('matplotlib', 'inline')"
BASH = "%%bash\nexit 1"
FIRST = "%%stepscope\nvalue += 100"
TIMED = "%%time\n\nvalue += helper.ONE"
LAST = "%%stepscope --session x\n\nvalue += 10\nprint(value)"
LATER = "value = 0"
HISTORY = ["", IMPORTS, FAILED, LATER, SHELL, BASH, FIRST, TIMED, LAST, LATER]


def transform(text: str) -> str:
    """As IPython does with commands of the shell, for one that begins a line."""
    return "".join(
        f"get_ipython().system({line[1:]!r})\n" if line.startswith("!") else f"{line}\n" for line in text.splitlines()
    )


def test_the_script_runs_as_the_cells_did(tmp_path: Path) -> None:
    """Up to the measured cell, without earlier measured ones, failed ones and what only a kernel can do."""
    (tmp_path / "helper.py").write_text("ONE = 1")
    made = cells.script(HISTORY, 8, {2}, transform, str(tmp_path))
    assert [part.cell for part in made.parts] == [1, 3, 4, 7, 8]
    done = subprocess.run([sys.executable, "-c", made.text], capture_output=True, text=True, check=True)
    assert done.stdout == "17\n"


def test_of_equal_texts_the_last_one_is_kept(tmp_path: Path) -> None:
    """A cell that was run again stands where it ran last."""
    made = cells.script(["", "a = 1", "b = 2", "a = 1", "%%stepscope\nprint(a)"], 4, set(), transform, str(tmp_path))
    assert [part.cell for part in made.parts] == [2, 3, 4]


@pytest.mark.parametrize(("line", "cell", "in_cell"), [("return 2 * x", 1, 4), ("helper.ONE", 7, 3), ("print(v", 8, 4)])
def test_places_are_those_of_the_cells(tmp_path: Path, line: str, cell: int, in_cell: int) -> None:
    """A line of the script is said as the line of its cell, counted as the front end counts; other paths stay."""
    made = cells.script(HISTORY, 8, {2}, transform, str(tmp_path))
    at = next(number for number, text in enumerate(made.text.splitlines(), 1) if line in text)
    assert HISTORY[cell].splitlines()[in_cell - 1].count(line) == 1
    said = made.named(f"slow at /tmp/stepscope-cells-1/cells.py:{at} main, not mycells.py:{at}x or helper.py:{at}")
    assert said == f"slow at cell {cell}, line {in_cell} main, not mycells.py:{at}x or helper.py:{at}"


def test_a_cell_that_ran_twice_has_its_last_number() -> None:
    """A kernel gives equal texts one number; the user sees the newest."""
    known = {one.hash: one for one in cells.known(["", "train()", "%%stepscope\ntrain()", "train()"])}
    assert known[notebook_cells.hash_of("train()")].name == "cell 3"
    assert known[notebook_cells.hash_of("%%stepscope\ntrain()")].above == 0
