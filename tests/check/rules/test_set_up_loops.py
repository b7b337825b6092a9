"""Loops that look hot and are not: they wait for a person, load weights, or begin a training in each iteration."""

from tests.check import checking

PREDICT = """
import keras

model = keras.models.load_model("chess.keras")

def ask():
    return {answer}

while True:
    board = encode()[None]
    show(model.predict(board))
    ask()
"""
GRAPH = """
import tensorflow as tf

weights = dict(load())
with tf.Session() as session:
    build()
    {loop}
"""


def test_a_loop_that_waits_for_a_person_is_no_hot_loop() -> None:
    """Beside the time that somebody takes to answer, a predict is nothing."""
    assert checking.codes(PREDICT.replace("{answer}", "input('move: ')")) == []
    assert checking.codes(PREDICT.replace("{answer}", "read()")) == ["KER001"]


def test_weights_are_loaded_once() -> None:
    """An assign for each variable is set-up; the same in each step is not."""
    load = "for name, value in weights.items():\n        session.run(tf.get_variable(name).assign(value))"
    steps = "while True:\n        session.run(tf.get_variable('x').assign(batch()))"
    assert checking.codes(GRAPH.replace("{loop}", load), version="1.15") == []
    assert checking.codes(GRAPH.replace("{loop}", steps), version="1.15") == ["OPS001"]


def test_an_initializer_begins_a_training() -> None:
    """A loop around it repeats whole trainings: told as info, for the graph grows all the same."""
    trials = "for trial in trials():\n        session.run(tf.global_variables_initializer())\n        train(session)"
    hits = checking.hits(GRAPH.replace("{loop}", trials), version="1.15")
    assert [(hit.code, hit.severity) for hit in hits] == [("OPS001", "info")]
