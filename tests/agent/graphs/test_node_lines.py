"""Which lines made an op: those of user code inside of the trace, the innermost first."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.graphs import node_lines
from stepscope.agent.graphs.node_lines import GraphNotes, NodeNotes

LIBRARY = "/usr/lib/python3/site-packages/library/ops.py"


class Thing:
    """A graph, or an op with a number."""

    def __init__(self, number: int = 0) -> None:
        self._id = number


def library(text: str, **names: Any) -> Any:
    """A function ``f`` as if it stood in a library's file."""
    space: dict[str, Any] = dict(names)
    exec(compile(text, LIBRARY, "exec"), space)
    return space["f"]


@pytest.fixture
def lines() -> NodeNotes:
    """Nothing noted yet."""
    return NodeNotes(lambda: 0, WeakIds())


def noted(lines: NodeNotes, graph: Thing, number: int) -> tuple[str, str, int]:
    """The place of an op."""
    made: GraphNotes = lines._entries[id(graph)][1]
    found = lines.lines_of(made.at(number)[0])
    return found[0] if found else node_lines.NOWHERE


def test_innermost_user_line(lines: NodeNotes) -> None:
    """Library frames between the op and the user's line are passed over; the user's file is told by its path."""
    graph = Thing()
    make = library("def f(note):\n    note()\n")
    make(lambda: lines.note(graph, Thing(2), sys._getframe(1)))
    line = sys._getframe().f_lineno - 1
    file, function, number = noted(lines, graph, 2)
    assert (file, number) == (__file__, line)
    assert function.endswith("test_innermost_user_line")


def test_path(lines: NodeNotes) -> None:
    """The lines that led to an op follow its own, up to the trace; equal paths are kept once."""
    graph = Thing()
    boundary = library("def f(inner):\n    inner()\n")
    lines.bound(boundary.__code__)

    def inner(number: int) -> None:
        lines.note(graph, Thing(number), sys._getframe())

    def outer() -> None:
        for number in (2, 3):
            inner(number)
        inner(4)

    boundary(outer)
    paths = [lines._entries[id(graph)][1].at(number)[0] for number in (2, 3, 4)]
    names = [[function.rpartition(".")[2] for _, function, _ in lines.lines_of(path)] for path in paths]
    assert names == [["inner", "outer"]] * 3
    assert paths[0] == paths[1] != paths[2]
    assert len(lines.paths) == 5  # two lines of outer, with the line of inner below each of them, and the empty path


def test_limit_of_paths(lines: NodeNotes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit new paths have no line, known ones have theirs."""
    monkeypatch.setattr(node_lines, "MAX_PATHS", 3)
    graph = Thing()
    for number in (2, 3):
        library("def f(note):\n    note()\n")(lambda number=number: lines.note(graph, Thing(number), sys._getframe()))
    lines.note(graph, Thing(4), sys._getframe())
    assert [noted(lines, graph, n)[0] for n in (2, 3, 4)] == [__file__, __file__, ""]


def test_nothing_outside_of_the_trace(lines: NodeNotes) -> None:
    """User code that only called what traced is not the line of an op."""
    graph = Thing()
    boundary = library("def f(note):\n    note()\n")
    lines.bound(boundary.__code__)
    inner = library("def f(note):\n    note()\n")
    boundary(lambda: inner(library("def f():\n    note(graph, op, sys._getframe())\n", **locals_of(lines, graph, 2))))
    assert noted(lines, graph, 2)[0] == __file__  # the lambda above stands inside of the trace
    boundary(library("def f():\n    note(graph, op, sys._getframe())\n", **locals_of(lines, graph, 3)))
    assert noted(lines, graph, 3) == node_lines.NOWHERE


def locals_of(lines: NodeNotes, graph: Thing, number: int) -> dict[str, Any]:
    """What a library function needs to note an op."""
    return {"note": lines.note, "graph": graph, "op": Thing(number), "sys": sys}


def test_numbers_with_holes(lines: NodeNotes) -> None:
    """Ops that were not noted have no place, also between those that were."""
    graph = Thing()
    for number in (5, 8):
        lines.note(graph, Thing(number), sys._getframe())
    assert noted(lines, graph, 5)[0] == noted(lines, graph, 8)[0] == __file__
    assert [noted(lines, graph, n) for n in (4, 6, 7, 9)] == [node_lines.NOWHERE] * 4


def test_layers(lines: NodeNotes) -> None:
    """An op belongs to what is being called."""
    graph = Thing()
    calling = iter((3, 0))
    lines.owner = lambda: next(calling)
    for number in (2, 3):
        lines.note(graph, Thing(number), None)
    made = lines._entries[id(graph)][1]
    assert [made.at(n)[1] for n in (2, 3)] == [3, 0]


def test_forgets_with_the_graph(lines: NodeNotes) -> None:
    """Notes of a graph go when it goes."""
    graph = Thing()
    lines.note(graph, Thing(2), None)
    del graph
    assert lines._entries == {}


def test_limit(lines: NodeNotes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ops beyond the limit have no place, until graphs that were noted are gone."""
    monkeypatch.setattr(node_lines, "MAX_OPS", 2)
    graph = Thing()
    for number in (2, 3, 4):
        lines.note(graph, Thing(number), sys._getframe())
    assert [noted(lines, graph, n)[0] != "" for n in (2, 3, 4)] == [True, True, False]
    del graph
    other = Thing()
    lines.note(other, Thing(2), sys._getframe())
    assert noted(lines, other, 2)[0] == __file__
