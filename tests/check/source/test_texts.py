"""What texts tell without being parsed, and that nothing is lost by leaving out what concerns no framework."""

from __future__ import annotations

import functools
import json

import pytest
from tests.check.checking import hits

from stepscope.check.context import Engine
from stepscope.check.registry import ALL
from stepscope.check.run.run import check
from stepscope.check.source import notebook, texts
from stepscope.check.source.modules import Project
from stepscope.check.source.versions import Target

PROCESSES = ("multiprocessing.", "concurrent.futures.", "os.fork")
"""Rules about processes want these names, and ask for a framework in what the processes run."""


def concerned(files: dict[str, str]) -> set[str]:
    """The files that concern a framework."""
    return set(texts.concerned({path: texts.facts(text.encode()) for path, text in files.items()}))


def test_what_is_called() -> None:
    """Words before an opening bracket, also with space between; words of bases; nothing else."""
    text = "class Net(nn.Model):\n    def go(self): return self.a (b(1)) + other\n"
    assert texts.facts(text.encode()).called == {"Net", "go", "a", "b", "nn", "Model"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import a.b as c, d", {"a", "b", "as", "c", "d"}),
        ("from a import (  # why\n    b,\n    c as e,\n)", {"a", "why", "b", "c", "as", "e"}),
        ("from a import b, \\\n    c", {"a", "b", "c"}),
        ("from .. import b", {"..", "b"}),
        ("from .a import b", {".", "a", "b"}),
        ("from .test_import import b", {".", "test_import", "b"}),
        ("x = 1; from a import b", {"a", "b"}),
    ],
)
def test_what_is_imported(text: str, words: set[str]) -> None:
    """Every form of import, dots of relative ones kept."""
    assert texts.facts(text.encode()).imported >= words


def test_a_notebook() -> None:
    """Imports stand in the strings of its cells."""
    cell = {"cell_type": "code", "source": ["import helpers\n", "from tensorflow import keras\n"]}
    told = texts.facts(notebook.code(json.dumps({"cells": [cell]}).encode()))
    assert "helpers" in told.imported
    assert told.framework


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a.py": "import os", "b.py": "import a"}, set()),
        ({"a.py": "import tensorflow", "b.py": "import os"}, {"a.py"}),
        ({"a.py": "import tensorflow", "b.py": "import a", "c.py": "x = 1"}, {"a.py", "b.py"}),
        ({"a.py": "import tensorflow, b", "b.py": "", "c.py": "import b"}, {"a.py", "b.py", "c.py"}),
        ({"p/__init__.py": "", "p/a.py": "from keras import x", "p/b.py": "from . import a"}, {"p/a.py", "p/b.py", "p/__init__.py"}),
        ({"p/__init__.py": "import numpy", "p/q/a.py": "from .. import f", "p/q/b.py": ""}, {"p/__init__.py", "p/q/a.py"}),
    ],
)  # fmt: skip
def test_which_files_concern_a_framework(files: dict[str, str], expected: set[str]) -> None:
    """Those in which one is named, and what imports connect with them in either direction."""
    assert concerned(files) == expected


def test_a_model_that_is_passed_in() -> None:
    """A file that names no framework is called with a model by one that does: it is checked."""
    files = {
        "serve.py": "def answer(model, rows):\n    for row in rows:\n        model.predict([row])\n",
        "main.py": "import keras\nimport serve\nserve.answer(keras.Sequential(), read())\n",
    }
    assert [(hit.code, hit.span.path) for hit in hits(files)] == [("KER001", "serve.py")]


def test_what_concerns_none_is_still_read() -> None:
    """A file without a framework is skipped with a reason where it is no Python."""
    contents = {"old.py": b"print 'x'\n", "plain.py": b"x = 1\n"}
    project = Project({path: functools.partial(bytes, text) for path, text in contents.items()}, ["."])
    results = check(Engine(project, Target()), contents, ALL)
    assert [bool(result.skipped) for result in results] == [True, False]


def test_rules_want_names_of_frameworks() -> None:
    """A call that a rule wants is written with a framework's name somewhere, or the rule asks for one itself."""
    names = {name for rule in ALL for name in rule.calls}
    assert [n for n in sorted(names) if not any(f in n for f in texts.NAMED) and not n.startswith(PROCESSES)] == []
