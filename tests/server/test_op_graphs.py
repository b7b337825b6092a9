"""What the page is told of a step's graph: what is open, what is chosen, what is found; and where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.derive.optrace.opgraph.op_graphs import LONG, RUNS
from tests.web import graph_sessions, timeline_sessions

from stepscope import store
from stepscope.derive.view import SessionView
from stepscope.server import graph_items, op_graphs
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from stepscope.model.api.op_graph import OpGraphView


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> SessionView:
    """A session with an op trace and its graph."""
    return SessionView(store.open_session(graph_sessions.stored(tmp_path_factory.mktemp("graphs"))))


def _titles(look: OpGraphView) -> set[str]:
    return {item.title for item in look.items if not item.open}


def test_what_is_open_is_as_asked_and_adds_up(view: SessionView) -> None:
    """By default down to layers; none; all."""
    usual, none, every = (op_graphs.look(view, "", None, opened) for opened in ("", "g0", "all"))
    assert {"one", "two"} <= _titles(usual)
    assert {"net", "gradient", "beside"} <= _titles(none)
    assert len(_titles(every)) >= len(RUNS)
    for look in (usual, none, every):
        shown = [item for item in look.items if not item.open]
        assert sum(item.own_ns for item in shown) == look.own_ns
        assert sum(item.ratio for item in shown) == pytest.approx(1)
        assert {arrow.source for arrow in look.arrows} <= {item.id for item in look.items}


def test_the_path_in_words_is_the_step(view: SessionView) -> None:
    """Parts and stretches add up to the step; what runs beside is not on it."""
    look = op_graphs.look(view, "", None, "")
    for told in (look.path, look.stretches):
        assert sum(one.ns for one in told) == look.step_ns
        assert sum(one.ratio for one in told) == pytest.approx(1)
    on_path = [one.title for one in look.stretches if one.id]
    assert on_path[:2] == ["one", "two"]
    assert "beside" not in on_path


def test_an_op_tells_what_it_takes_and_gives(view: SessionView) -> None:
    """By its full name, as the timeline has it, or by its name here."""
    told = graph_items.detail(view, "", None, "net/two/MatMul:MatMul")
    assert [(end.title, end.text, end.bytes) for end in told.takes] == [("Relu", "float32[32,64]", 32 * 64 * 4)]
    assert [end.title for end in told.gives] == ["Relu"]
    assert (told.layer, told.makes, told.calls, told.own_ns) == ("two", "float32[32,64]", 1, 200_000)
    assert told.track.startswith("ops-001.")
    assert graph_items.detail(view, "", None, told.id) == told
    group = graph_items.detail(view, "", None, told.inside[0])
    assert (group.title, group.ops, group.own_ns) == ("two", 2, 230_000)
    assert group.longest[0].id == told.id


def test_hits_are_by_their_begin_and_name_the_groups_around(view: SessionView) -> None:
    found = graph_items.find(view, "", None, "matmul two")
    assert [hit.about for hit in found.items] == ["MatMul", "MatMul"]
    assert found.items[0].inside[0] == graph_items.detail(view, "", None, "net/two/MatMul:MatMul").inside[0]
    assert graph_items.find(view, "", None, LONG).total >= 2
    assert graph_items.find(view, "", None, " ").total == 0


@pytest.mark.parametrize(("trace", "step", "says"), [("ops-9", None, "expected one of ops-001"), ("", 77, "step 77")])
def test_what_is_not_there_is_refused(view: SessionView, trace: str, step: int | None, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        op_graphs.look(view, trace, step, "")
    with pytest.raises(UsageError, match="an op of the input"):
        graph_items.detail(view, "", None, "mapped:Cast")


def test_without_an_op_trace_the_command_that_takes_one_is_said() -> None:
    with pytest.raises(UsageError, match="stepscope trace JOB"):
        op_graphs.look(SessionView(timeline_sessions.session(steps=20)), "", None, "")
