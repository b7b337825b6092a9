"""tf.data, threads and garbage collection, on real programs."""

from __future__ import annotations

import pytest
from tests.agent.conftest import Armed
from tests.agent.trials.run_trial import run

pytestmark = pytest.mark.tf

PIPELINE = """
import tensorflow as tf
calls = 0
def count(v):
    global calls
    calls += 1
    return v
def load(i): return tf.numpy_function(count, [i], tf.int64)
data = tf.data.Dataset.range(40).map(load).shuffle(40, seed=1).batch(4)
epochs = [sorted(int(x) for batch in data for x in batch) for _ in range(3)]
print(epochs[0] == epochs[2] == list(range(40)), calls)
endless = tf.data.Dataset.range(4).repeat().map(load)
print([int(x) for x in endless.take(6)])
"""

MAPS = """
import tensorflow as tf
one = tf.data.Dataset.range(4).map(lambda x: x + 1)
many = tf.data.Dataset.range(4).map(lambda x: x + 1, num_parallel_calls=2)
print(type(one).__name__, type(many).__name__, [int(x) for x in one])
"""

THREADS = """
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(7)
tf.config.threading.set_inter_op_parallelism_threads(5)
print(tf.config.threading.get_intra_op_parallelism_threads(), tf.config.threading.get_inter_op_parallelism_threads())
print(float(tf.reduce_sum(tf.ones((2, 2)))))
"""


def test_a_cache_after_the_last_map(armed: Armed) -> None:
    """The map runs once for each element; what the program put over it stays; endless input is left alone."""
    trial = run(armed, PIPELINE, "cache-input")
    lines = trial.output.splitlines()
    assert lines[0] == "True 40", trial.errors
    assert lines[1] == "[0, 1, 2, 3, 0, 1]"
    assert trial.outcome("cache-input")[0] == "in-effect"


def test_a_dataset_of_debug_mode_has_an_end(armed: Armed) -> None:
    """There prefetch gives the dataset itself; the way back to its map ends all the same."""
    program = """
import tensorflow as tf
tf.data.experimental.enable_debug_mode()
data = tf.data.Dataset.range(4).map(lambda x: x + 1).batch(2).prefetch(2)
print([batch.numpy().tolist() for batch in data])
"""
    trial = run(armed, program, "cache-input")
    assert trial.output.splitlines() == ["[[1, 2], [3, 4]]"], trial.errors


def test_maps_in_parallel(armed: Armed) -> None:
    """Only maps without parallel calls are changed, and they give the same elements in the same order."""
    trial = run(armed, MAPS, "parallel-map")
    assert trial.output == "_ParallelMapDataset _ParallelMapDataset [1, 2, 3, 4]\n", trial.errors
    assert trial.outcome("parallel-map") == ("in-effect", 1, "")


def test_threads_of_its_own(armed: Armed) -> None:
    """A pipeline gets a pool of as many threads as the job has cores, and gives the same elements."""
    program = """
import tensorflow as tf
data = tf.data.Dataset.range(4)
own = tf.data.Options()
own.threading.private_threadpool_size = 3
print([int(x) for x in data.map(lambda x: x + 1, num_parallel_calls=2)], [int(x) for x in data.with_options(own)])
"""
    trial = run(armed, program, "private-threads")
    assert trial.output == "[1, 2, 3, 4] [0, 1, 2, 3]\n", trial.errors
    assert trial.outcome("private-threads") == ("in-effect", 1, "")


def test_prefetch_at_the_end(armed: Armed) -> None:
    """A pipeline that does not end in prefetch does now, with the same elements."""
    trial = run(armed, "import tensorflow as tf\nprint([int(x) for x in tf.data.Dataset.range(3)])", "prefetch")
    assert (trial.output, trial.outcome("prefetch")) == ("[0, 1, 2]\n", ("in-effect", 1, "")), trial.errors


def test_prefetch_that_is_there(armed: Armed) -> None:
    """The line of an intervention that finds its work done says so."""
    program = "import tensorflow as tf\nprint([int(x) for x in tf.data.Dataset.range(3).prefetch(1)])"
    trial = run(armed, program, "prefetch")
    assert trial.outcome("prefetch") == ("not-reached", 0, "the dataset ends in prefetch already")


@pytest.mark.parametrize(("intervention", "output", "count"), [("threads:2", "2 5", 2), ("threads-default", "0 0", 2)])
def test_threads(armed: Armed, intervention: str, output: str, count: int) -> None:
    """Threads are those of the trial, whatever the program sets."""
    trial = run(armed, THREADS, intervention, own_import=True)
    assert trial.output == output + "\n4.0\n", trial.errors
    assert trial.outcome(intervention.partition(":")[0]) == ("in-effect", count, "")
