"""What the probes of settings and of builds record, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stepscope.model.log.events import AgentDiagnostic, GraphSize, Probe
from stepscope.model.log.program import Setting
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.tf, pytest.mark.slow]


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Any]) -> Any:
    """The program ``building``."""
    return recorded("building")


def test_results_are_those_of_a_plain_run(run: Any) -> None:
    """The same output, and nothing of ours failed."""
    assert (run.result.returncode, run.result.stdout) == (0, run.plain.stdout), run.result.stderr
    assert run.all(AgentDiagnostic) == []


def test_settings_are_told(run: Any) -> None:
    """What turns eager functions, checks of numbers, double precision or the debug mode of tf.data on or off."""
    said = [(s.name, s.value, s.line, s.function) for s in run.all(Setting)]
    assert said == [
        ("run_functions_eagerly", True, run.line("on"), "main"),
        ("run_functions_eagerly", False, run.line("off"), "main"),
        ("check_numerics", True, run.line("checks on"), "debugging"),
        ("check_numerics", False, run.line("checks off"), "debugging"),
        ("double_precision", True, run.line("double"), "debugging"),
        ("double_precision", False, run.line("single"), "debugging"),
        ("data_debug_mode", True, run.line("data"), "debugging"),
        ("op_determinism", True, run.line("repeatable"), "debugging"),
    ]


@pytest.mark.parametrize(
    ("mark", "role", "times"),
    [
        ("load", "model", 3),
        ("clone", "model", 1),
        ("saved", "saved_model", 2),
        ("missing", "saved_model", 1),
        ("session", "session", 2),
        ("growing", "session", 1),
        ("restore", "variables", 1),
        ("import", "graph", 1),
    ],
)
def test_builds_are_told_by_their_lines(run: Any, mark: str, role: str, times: int) -> None:
    """Each load, clone, session, restore and import is one record at the line that asks for it."""
    assert [r.name.role for r in run.called(Kind.BUILD, mark)] == [role] * times


def test_a_build_inside_of_another_one_is_not_told(run: Any) -> None:
    """Only the outermost build counts, and one that raised says so."""
    builds = run.of(Kind.BUILD)
    assert not any(a is not b and a.inside(b) for a in builds for b in builds)
    assert [r for r in builds if r.flags & Flag.RAISED] == run.called(Kind.BUILD, "missing")


def test_a_growing_graph_is_told(run: Any) -> None:
    """The ops of a session's graph are told again as long as they grow."""
    sizes = [e.ops for e in run.all(GraphSize)]
    assert len(sizes) >= 4
    last = {e.id: e.ops for e in run.all(GraphSize)}
    assert sorted(sizes) == sizes
    assert max(last.values()) > 60


def test_all_probes_of_builds_attach(run: Any) -> None:
    """Nothing that this TensorFlow and Keras have is missed."""
    probes = [e for e in run.all(Probe) if e.name.startswith("building:")]
    assert len(probes) >= 6
    assert [(e.name, e.why) for e in probes if not e.attached] == []
