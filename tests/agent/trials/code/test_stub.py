"""stub and gc-off on real programs, and what is never loaded without a trial."""

from __future__ import annotations

from importlib.metadata import Distribution
from pathlib import Path

import pytest
from tests.agent.conftest import Armed
from tests.agent.trials.run_trial import QUIET, run

pytestmark = pytest.mark.tf

STEPS = """
import gc, time, tensorflow as tf
weights = tf.Variable(0.0)
calls = 0
class Loader:
    def load(self, i, scale=2.0):
        global calls
        calls += 1
        return scale * i
@tf.function
def step(x): weights.assign_sub(0.001 * x)
async def answer():
    return 1.0
loader = Loader()
ends = time.monotonic() + 60
"""

STUBBED = (
    STEPS
    + """
before = Loader.load.__code__
while Loader.load.__code__ is before and time.monotonic() < ends: pass
results = [loader.load(float(i)) for i in range(60)]
print(calls, results[:7], results[-1])
@tf.function
def traced(): return tf.constant(loader.load(1.0, scale=7.0))
print(float(traced()), calls)
"""
)

GENERATED = (
    STEPS
    + """
made = 0
class Source:
    def rows(self, count):
        global made
        for i in range(count):
            made += 1
            yield i
before = Source.rows.__code__
while Source.rows.__code__ is before and time.monotonic() < ends: pass
items = list(Source().rows(50))
print(items[:10], made, len(items))
print(list(Source().rows(3)))
"""
)

COMPILED = (
    STEPS
    + """
eager = []
class Model:
    def update(self, x):
        eager.append(tf.executing_eagerly())
        return weights.assign_add(x)
before = Model.update.__code__
while Model.update.__code__ is before and time.monotonic() < ends: pass
model = Model()
print([float(model.update(tf.constant(1.0))) for _ in range(4)], eager)
"""
)

LATE = """import time, tensorflow as tf
time.sleep(0.5)  # the agent looks meanwhile
class Loader:
    time.sleep(0.5)
    def load(self, i):
        return 2.0 * i
before, ends = Loader.load.__code__, time.monotonic() + 60
while Loader.load.__code__ is before and time.monotonic() < ends: pass
print([Loader().load(float(i)) for i in range(9)][-1])
"""

PLAIN = """
import time, {module}
calls = 0
def prepare(i):
    global calls
    calls += 1
    return 2.0 * i
before, ends = prepare.__code__, time.monotonic() + 60
while prepare.__code__ is before and time.monotonic() < ends: pass
print([prepare(float(i)) for i in range(9)][-1], calls)
"""

COLLECTED = (
    STEPS
    + """
while (gc.isenabled() or gc.get_freeze_count() <= 1000) and time.monotonic() < ends: step(tf.constant(1.0))
print(gc.isenabled(), gc.get_freeze_count() > 1000, gc.collect())
gc.enable()
print(gc.isenabled())
"""
)


def test_a_method_returns_its_last_result(armed: Armed) -> None:
    """After five real calls a method returns its last result; in a trace it is called as it is."""
    trial = run(armed, STUBBED, "stub:Loader.load")
    assert trial.output.splitlines() == ["5 [0.0, 2.0, 4.0, 6.0, 8.0, 8.0, 8.0] 8.0", "7.0 6"], trial.errors
    assert trial.outcome("stub") == ("in-effect", 55, "")


def test_a_generator_gives_its_first_items_again(armed: Armed) -> None:
    """After eight real items a generator repeats them, up to a thousand; a shorter one stays as it is."""
    trial = run(armed, GENERATED, "stub:Source.rows")
    assert trial.output.splitlines() == ["[0, 1, 2, 3, 4, 5, 6, 7, 0, 1] 8 1000", "[0, 1, 2]"], trial.errors
    assert trial.outcome("stub")[0] == "in-effect"


def test_a_function_becomes_a_graph(armed: Armed) -> None:
    """A method runs in a graph that is traced once, with the same results."""
    trial = run(armed, COMPILED, "graph-function:Model.update")
    assert trial.output == "[1.0, 2.0, 3.0, 4.0] [False]\n", trial.errors
    assert trial.outcome("graph-function") == ("in-effect", 4, "")


def test_a_line_names_a_function_that_is_not_there_yet(armed: Armed, tmp_path: Path) -> None:
    """While the module runs it is a function too, around every line: the stub waits for the one that is meant."""
    script = tmp_path / "job.py"
    script.write_text(LATE)
    trial = run(armed, script, f"stub:{script}:6")
    assert trial.outcome("stub") == ("in-effect", 4, "")
    assert trial.output == "8.0\n", trial.errors


@pytest.mark.parametrize("module", ["onnxruntime", "torch", "jax"])
def test_a_function_outside_of_graphs_is_stubbed(armed: Armed, module: str) -> None:
    """Whichever framework the program imports: Python that no trace runs is replaced, as the reports offer."""
    if not list(Distribution.discover(name=module)):
        pytest.skip(f"no {module}")
    trial = run(armed, PLAIN.format(module=module), "stub:prepare")
    assert trial.output == "8.0 5\n", trial.errors
    assert trial.outcome("stub") == ("in-effect", 4, "")


def test_what_no_stub_can_replace(armed: Armed) -> None:
    """The line says why a function was not stubbed: it is a coroutine, or there is none of that name."""
    trial = run(armed, COLLECTED + "print(loader.load(1.0))", "stub:answer", "gc-off")
    assert trial.output.splitlines()[-1] == "2.0", trial.errors
    assert trial.outcome("stub") == ("not-reached", 0, "answer is a coroutine")


def test_no_garbage_is_collected_once_steps_are_steady(armed: Armed) -> None:
    """Collection is off for good: neither gc.enable nor gc.collect of the program brings it back."""
    trial = run(armed, COLLECTED, "gc-off")
    assert trial.output == "False True 0\nFalse\n", trial.errors
    assert trial.outcome("gc-off") == ("in-effect", 1, "")


def test_nothing_is_loaded_without_a_trial(armed: Armed) -> None:
    """A run that is no trial loads no code of trials."""
    result = armed.start(
        "import sys, tensorflow\nprint([name for name in sys.modules if 'agent.trials' in name])", env=QUIET
    )
    assert result.stdout == "[]\n", result.stderr


def test_an_unknown_intervention_fails_alone(armed: Armed) -> None:
    """An intervention that the agent does not know, or with a wrong argument, is logged as failed; the job runs on."""
    trial = run(armed, "import tensorflow as tf\nprint(float(tf.constant(1.0)))", "sooner", "batch:none", "stub")
    assert (trial.output, trial.code) == ("1.0\n", 0)
    assert {name: line.outcome for name, line in trial.interventions.items()} == {
        "sooner": "failed",
        "batch": "failed",
        "stub": "failed",
    }
    assert "batch:none" in trial.interventions["batch"].text or "invalid literal" in trial.interventions["batch"].text
