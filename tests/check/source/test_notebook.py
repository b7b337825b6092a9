"""Of a notebook the code counts: its outputs are neither searched nor weighed, however large they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope.check.run import cache, work
from stepscope.check.source import notebook
from stepscope.check.source.modules import Project
from stepscope.check.source.source import MAX_BYTES, SkippedError, code, read
from stepscope.check.source.versions import Target

SOURCE = ["import tensorflow as tf\n", "%matplotlib inline\n", "class Net(tf.keras.Model):\n", "    pass\n"]
OUTPUT = "import keras; class Fake(Model): train(x)"
"""What would be taken for code, were it looked at."""
LARGE = OUTPUT * (MAX_BYTES // len(OUTPUT) + 1)


def book(text: str, *, value: object = 1) -> bytes:
    """A notebook with a markdown cell and a code cell whose outputs hold a text."""
    outputs = [
        {"output_type": "stream", "text": [text]},
        {"output_type": "display_data", "data": {"text/html": text, "application/json": {"value": value}}},
    ]
    cells: list[dict[str, object]] = [
        {"cell_type": "markdown", "source": [text]},
        {"cell_type": "code", "outputs": outputs, "source": SOURCE, "metadata": {"text": text}},
    ]
    return json.dumps({"cells": cells, "metadata": {"widgets": text}, "nbformat": 4}, indent=1).encode()


@pytest.mark.parametrize("value", [1, float("nan")])
def test_what_is_searched_is_the_code(value: float) -> None:
    """The text that words are looked for in is that of the code cells, also where outputs are no strict JSON."""
    searched = code("a.ipynb", book(OUTPUT, value=value))
    assert searched.decode() == "".join(SOURCE).replace("%matplotlib inline", "pass") + "\n"
    assert searched == code("a.ipynb", book("")) == code("a.ipynb", book(LARGE, value=value))


def test_what_is_weighed_is_the_code() -> None:
    """Processes begin anew after so many bytes of code, and files are too large by it; outputs do not count."""
    project = Project({"a.ipynb": lambda: book(LARGE), "b.ipynb": lambda: book("")})
    for path in project.files:
        assert project.load(path) is not None
        assert project.told(path).size == len(code(path, book("")))
    assert project.loaded_bytes == 2 * len(code("b.ipynb", book("")))
    assert project.skipped == {}


def test_files_are_shared_out_by_their_code(tmp_path: Path) -> None:
    """A folder of large outputs and little code is one that a single process checks."""
    paths = []
    for number in range(3):
        path = tmp_path / f"n{number}.ipynb"
        path.write_bytes(book(LARGE))
        paths.append(path.as_posix())
    told = {path: state.facts for path, state in cache.states(paths, {}).items()}
    job = work.FilesToCheck(
        files=tuple(paths), todo=tuple(paths), roots=(str(tmp_path),), codes=("TFD001",), target=Target()
    )
    assert sum(facts.size for facts in told.values()) < work.PARALLEL_BYTES
    assert [result.skipped for result in work.run(job).results] == ["", "", ""]


@pytest.mark.parametrize("cells", [[1, None, {}], [{"cell_type": 3}], [{"cell_type": "code", "source": 7}]])
def test_cells_of_another_form(cells: list[object]) -> None:
    """What is no cell is none, and what is no text is read as one, as ever."""
    text = "7\n" if cells == [{"cell_type": "code", "source": 7}] else ""
    assert "".join(cell.text for cell in notebook.cells(json.dumps({"cells": cells}).encode())) == text


def test_too_much_code_is_skipped() -> None:
    """A notebook of more code than a file may have tells nothing."""
    cell = {"cell_type": "code", "source": ["x = 1\n"] * (MAX_BYTES // 6 + 1)}
    data = json.dumps({"cells": [cell]}).encode()
    assert code("a.ipynb", data) == b""
    project = Project({"a.ipynb": lambda: data})
    assert project.load("a.ipynb") is None
    assert project.skipped == {"a.ipynb": "larger than 4 MiB"}
    with pytest.raises(ValueError, match="no cells"):
        notebook.cells(b"{}")
    assert read("b.ipynb", book("")).tree.body


def cells_of(*sources: str) -> bytes:
    """A notebook of these code cells."""
    return json.dumps({"cells": [{"cell_type": "code", "source": source} for source in sources]}).encode()


@pytest.mark.parametrize(
    "cell",
    [
        "!cmd --a \\\n    --b \\\n    --c\nx = 1",
        "%timeit \\\n    f(x)\nx = 1",
        "x = !ls \\\n    -l\ny = 1",
        "if y:\n    !cmd \\\n        --b\n    z = 1",
        "pip install -q tensorflow\nx = 1",
        "  pip install \\\n   keras\n",
        " x = 1\n y = 2",
        "\n  if y:\n      z = 2\n",
    ],
)
def test_cells_that_run_in_jupyter(cell: str) -> None:
    """Magics with continuations, a bare pip, indented cells: read as Python, line for line."""
    source = read("a.ipynb", cells_of("y = 0", cell, "after = 1"))
    assert source.left_out == ()
    assert source.cells.starts == (1, 2, 3 + cell.count("\n"))
    assert source.tree.body[-1].lineno == source.cells.starts[2]


@pytest.mark.parametrize(
    "line", ["pip = install", "pip.install(x)", "conda_list = 1", "x = 3  # pip install y", "a = b % c \\\n  + 1"]
)
def test_python_that_looks_like_a_command(line: str) -> None:
    """It stays as it is."""
    assert notebook.cells(cells_of(line))[0].text == f"{line}\n"


def test_a_cell_that_is_not_python_is_left_out() -> None:
    """The others are read, on their own lines; if none is left the file is skipped, by cell and line."""
    source = read("a.ipynb", cells_of("x = 1", "def broken(:\n    pass", "z = 3"))
    assert [(cell.number, cell.line) for cell in source.left_out] == [(2, 1)]
    assert [(source.cells.at(node.lineno)) for node in source.tree.body] == [(1, 1), (3, 1)]
    with pytest.raises(SkippedError, match=r"not valid Python 3 \(cell 1, line 2: "):
        read("a.ipynb", cells_of("x =\\\n )"))


def test_cells_that_are_python_together() -> None:
    """A bracket that the next cell closes is left to the parser of the whole."""
    assert read("a.ipynb", cells_of("x = (1,", "2)")).left_out == ()


def test_a_timed_statement_of_several_lines() -> None:
    """``%time`` leaves the statement, with its next line; another magic takes its next lines with it."""
    text = "%time y = f(x, \\\n    z)\n!pip install a \\\n    b\nlast = 1"
    data = json.dumps({"cells": [{"cell_type": "code", "source": text}]}).encode()
    assert code("a.ipynb", data).decode() == "y = f(x, \\\n    z)\npass\n\nlast = 1\n"
