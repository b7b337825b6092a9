"""No reference of the agent's to a frame, a traceback, or what these hold outlives a call, on any supported Python."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.agent.conftest import Armed, make_run

import stepscope.agent
from stepscope.model.log.events import AgentDiagnostic

AGENT = Path(stepscope.agent.__path__[0])
PROGRAM = Path(__file__).with_name("frames_program.py")
FRAMES = frozenset(
    (
        *("_current_frames", "_current_exceptions", "_getframe", "currentframe", "f_back", "f_locals", "tb_frame"),
        *("tb_next", "gi_frame", "cr_frame", "ag_frame", "getinnerframes", "getouterframes", "getargvalues"),
        *("__traceback__", "__context__", "__cause__", "with_traceback", "exc_info", "exception", "excepthook"),
        *("extract_stack", "extract_tb", "walk_stack", "walk_tb", "last_traceback", "last_value", "last_exc"),
        *("get_objects", "get_referrers", "get_referents", "settrace", "setprofile"),
    )
)
"""Attributes that lead to frames, whatever they are read of."""
OF_MODULES = {"gc": frozenset(("callbacks",)), "inspect": frozenset(("stack", "trace"))}
HANDED = frozenset(("Stacks", "variables", "variable"))
"""What ``core/other_frames.py`` gives to others."""
VERSIONS = ["3.9", "3.10", "3.11", "3.12", "3.13"]


def touching(source: str, place: str) -> Iterator[str]:
    """``PLACE:FUNCTION`` of each outermost function that touches frames."""
    tree = ast.parse(source)
    handed = {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "stepscope.agent.core.other_frames"
        for name in node.names
    } & HANDED

    def of(node: ast.AST, names: tuple[str, ...], *, inside: bool) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)) and not inside:
                yield from of(child, (*names, child.name), inside=isinstance(child, ast.FunctionDef))
                continue
            read = isinstance(child, ast.Attribute) and (
                child.attr in FRAMES
                or (isinstance(child.value, ast.Name) and child.attr in OF_MODULES.get(child.value.id, ()))
            )
            if read or (isinstance(child, ast.Name) and child.id in handed):
                yield f"{place}:{'.'.join(names)}"
            yield from of(child, names, inside=inside)

    return of(tree, (), inside=False)


def places() -> set[str]:
    """All of them in the agent."""
    return {
        found
        for path in sorted(AGENT.rglob("*.py"))
        for found in touching(path.read_text(), path.relative_to(AGENT).as_posix())
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_of_the_job_outlives_a_call(version: str, tmp_path: Path, find_python: Callable[[str], str]) -> None:
    """Each function that touches frames is called, with collections off, while other threads hold objects of the job's;
    the job lets go of them, and they are gone.
    """
    made = make_run(tmp_path)
    job = Armed(folder=made.folder, python=find_python(version))
    result = job.start(PROGRAM, env={"PYTHONPATH": str(PROGRAM.parents[2])})
    assert (result.stderr, result.returncode) == ("", 0)
    told = json.loads(result.stdout)
    assert told["kept"] == {}
    assert not told["collects"]
    assert places() <= set(told["called"])
    (process,) = job.processes()
    failures = [line.text for line in process.of(AgentDiagnostic)]
    assert failures == []  # what our guard swallows has not been called


@pytest.mark.parametrize(
    "body",
    ["return sys._current_frames()", "return frame.f_locals", "return error.__traceback__", "return gc.callbacks"],
)
def test_a_new_function_is_found(body: str) -> None:
    """One that the table does not have fails the test above."""
    assert list(touching(f"class A:\n def f(self):\n  def g():\n   {body}\n", "a.py")) == ["a.py:A.f"]


def test_frames_of_other_threads_are_asked_for_in_one_place() -> None:
    """All else goes through ``Stacks`` and ``variables``, which leave nothing behind."""
    asking = {
        path.relative_to(AGENT).as_posix()
        for path in AGENT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("_current_frames", "f_locals")
    }
    assert asking == {"core/other_frames.py"}
