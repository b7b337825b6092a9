"""The time of imports by the user's line that asks for them: from notes, samples and the hook's times of frameworks."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job

from stepscope.derive.ledger import import_times
from stepscope.derive.python import import_source
from stepscope.model.log.program import ImportAsked

UTILS = "/job/utils.py"
SYSTEM = Frame("<frozen importlib._bootstrap>", "_find_and_load", 1, own=False)
PANDAS = Frame("/env/lib/site-packages/pandas/core/api.py", "<module>", 5, own=False)
SOURCE = "import os\nimport utils\nimport pandas\nos.environ['A'] = '1'\nimport tensorflow\n"


def job(source: str = SOURCE) -> Job:
    """A job with the source of its script."""
    made = Job()
    made.sources[SCRIPT] = source
    return made


def asked(made: Job, at: int, name: str, *lines: tuple[str, int]) -> None:
    """A note, ``at`` milliseconds."""
    made.event(ImportAsked(at=at * MS, name=name, stack=tuple((file, "<module>", line) for file, line in lines)))


def said(made: Job) -> dict[tuple[str, str, int], int]:
    """Milliseconds by module, file and line."""
    view = made.view()
    times = import_times.build(view.workers[0], view.source_of)
    return {(time.module, time.file, time.line): time.ns // MS for time in times}


def test_between_two_notes_the_statement_in_progress_has_the_time() -> None:
    """A module of the user's has its body's time, what it imports its own, and a framework all until its end."""
    made = job()
    made.sources[UTILS] = "import json\nimport xml.dom\nTABLE = burn()\n"
    asked(made, 100, "utils", (SCRIPT, 2))
    asked(made, 150, "json", (SCRIPT, 2), (UTILS, 1))
    asked(made, 170, "xml", (SCRIPT, 2), (UTILS, 2))
    asked(made, 1170, "pandas", (SCRIPT, 3))
    asked(made, 1500, "pandas.core", (SCRIPT, 3))
    asked(made, 1700, "tensorflow", (SCRIPT, 5))
    asked(made, 5700, "", (SCRIPT, 5))
    made.framework(at=5700 * MS, dur=4000 * MS)
    assert said(made) == {
        ("tensorflow", SCRIPT, 5): 4000,
        ("utils", SCRIPT, 2): 1050,  # its last import or its table: both are within the import of utils
        ("pandas", SCRIPT, 3): 530,
        ("json", UTILS, 1): 20,
    }


def test_time_in_which_other_code_may_run_is_no_import() -> None:
    """Between two imports with a call between them, or in one, it is not known which had the time."""
    made = job("import pandas\nDATA = pandas.read_csv('a')\nimport numpy\nsetup()\nimport tensorflow\n")
    asked(made, 0, "pandas", (SCRIPT, 1))
    asked(made, 3000, "numpy", (SCRIPT, 3))
    made.event(ImportAsked(at=3100 * MS, name="scipy", stack=((SCRIPT, "<module>", 4), (UTILS, "setup", 8))))
    asked(made, 9000, "tensorflow", (SCRIPT, 5))
    asked(made, 9500, "", (SCRIPT, 5))
    assert said(made) == {("tensorflow", SCRIPT, 5): 500}


@pytest.mark.parametrize("name", ["csv", ""], ids=["an import in it", "the sampling begins"])
def test_a_function_that_runs_by_the_next_note_may_have_the_time(name: str) -> None:
    """Between the import and the note lies the function's work: 6 s of a loop were said of NumPy's import."""
    made = job("import json\nimport numpy\n\ndef main():\n    work()\n    import csv\n\nmain()\n")
    asked(made, 0, "json", (SCRIPT, 1))
    asked(made, 20, "numpy", (SCRIPT, 2))
    made.event(ImportAsked(at=6600 * MS, name=name, stack=((SCRIPT, "<module>", 8), (SCRIPT, "main", 6))))
    assert said(made) == {("json", SCRIPT, 1): 20}


def test_within_a_function_its_own_statements_count() -> None:
    made = job("def main():\n    import json\n    work()\n    import csv\n    import html\n\nmain()\n")
    for at, name, line in ((0, "json", 2), (3000, "csv", 4), (3100, "html", 5)):
        made.event(ImportAsked(at=at * MS, name=name, stack=((SCRIPT, "<module>", 7), (SCRIPT, "main", line))))
    assert said(made) == {("csv", SCRIPT, 4): 100}


def test_samples_say_it_where_there_are_no_notes() -> None:
    """A library's import is that of the line, a body of the user's that of the line that imports it; calls are none."""
    made = job()
    main = Frame(SCRIPT, "<module>", 3)
    body = Frame(UTILS, "<module>", 9), Frame(UTILS, "burn", 4)
    made.samples(range(100 * MS, 1000 * MS, 50 * MS), main, SYSTEM, PANDAS)
    made.samples(range(1000 * MS, 1500 * MS, 50 * MS), Frame(SCRIPT, "<module>", 2), SYSTEM, *body)
    made.samples(range(1500 * MS, 2000 * MS, 50 * MS), Frame(SCRIPT, "<module>", 8), PANDAS, SYSTEM, PANDAS)
    assert said(made) == {("pandas", SCRIPT, 3): 900, ("utils", SCRIPT, 2): 500}


def test_a_framework_that_no_sample_shows() -> None:
    """While it is loaded the lock may be held: the hook's time is that of the line that was seen, or of no line."""
    made = job()
    made.framework(at=4000 * MS, dur=3500 * MS)
    assert said(made) == {("tensorflow", "", 0): 3500}
    made.samples(range(600 * MS, 3000 * MS, 50 * MS), Frame(SCRIPT, "<module>", 5), SYSTEM)
    assert said(made) == {("tensorflow", SCRIPT, 5): 3500}


@pytest.mark.parametrize(
    ("between", "quick"),
    [
        ("", True),
        ("SIZE = 3\nclass A:\n    def f(self):\n        return load()\n", True),
        ("os.environ['A'] = '1'\nsys.path.append('x')\nlogging.basicConfig()\n", True),
        ("@decorated('x')\ndef f():\n    pass\n", False),
        ("DATA = load()\n", False),
        ("for i in (1, 2):\n    pass\n", False),
        ("if not DATA:\n    load()\n", False),
    ],
)
def test_what_takes_no_time_between_two_imports(between: str, quick: bool) -> None:
    """Definitions and settings do not; calls and loops may."""
    source = f"import a\n{between}import b\n"
    assert import_source.only_imports(source, 1, source.count("\n")) is quick


def test_without_the_source_only_neighbours_are_sure() -> None:
    """Nothing can stand between two lines that follow each other."""
    assert import_source.only_imports(None, 3, 4)
    assert not import_source.only_imports(None, 3, 5)


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("/env/lib/site-packages/pandas/core/api.py", "pandas"),
        ("/env/lib/site-packages/six.py", "six"),
        ("/job/tools/__init__.py", "tools"),
        ("/job/utils.py", "utils"),
    ],
)
def test_module_of_a_file(file: str, module: str) -> None:
    """An installed file's package, another's own name."""
    assert import_times.module_of(file) == module
