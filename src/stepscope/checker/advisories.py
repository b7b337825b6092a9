"""Known defects of TensorFlow and Keras that cost time or memory, by version and call.

Data with sources, not rules. A version is affected from ``first`` up to, not including, ``fixed``. Nothing is stated
that the source does not say: ``fixed`` is the first version that somebody reported as free of the defect.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Advisory:
    """A known defect."""

    calls: frozenset[str]
    """Qualified names whose repeated call shows the defect."""
    first: tuple[int, int]
    fixed: tuple[int, int]
    what: str
    """Predicate of the message, after the name of the call."""
    remedy: str
    source: str


PREDICT = frozenset({"keras.Model.predict"})
FIT_OR_PREDICT = frozenset({"keras.Model.predict", "keras.Model.fit", "keras.Model.evaluate"})

ALL: tuple[Advisory, ...] = (
    Advisory(
        calls=PREDICT,
        first=(1, 12),
        fixed=(1, 15),
        what="leaks memory in every call, with Keras before 2.3",
        remedy="upgrade, or predict all inputs in one call",
        source="https://github.com/keras-team/keras/issues/13118",
    ),
    Advisory(
        calls=FIT_OR_PREDICT,
        first=(2, 0),
        fixed=(2, 1),
        what="leaks memory in every call",
        remedy="upgrade, or call the model itself: model(x, training=False)",
        source="https://github.com/tensorflow/tensorflow/issues/33030",
    ),
    Advisory(
        calls=PREDICT,
        first=(2, 1),
        fixed=(2, 3),
        what="leaks memory in calls",
        remedy="upgrade, or call the model itself: model(x, training=False)",
        source="https://github.com/tensorflow/tensorflow/issues/38598",
    ),
    Advisory(
        calls=PREDICT,
        first=(2, 3),
        fixed=(2, 4),
        what="leaks memory in calls in a loop",
        remedy="call the model itself: model(x, training=False)",
        source="https://github.com/tensorflow/tensorflow/issues/44711",
    ),
    Advisory(
        calls=PREDICT,
        first=(2, 8),
        fixed=(2, 14),
        what="uses more memory with each call in a long loop over arrays",
        remedy="call the model itself, or pass one tf.data.Dataset",
        source="https://github.com/tensorflow/tensorflow/issues/58676",
    ),
)
