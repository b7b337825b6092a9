"""All rules, by hand, sorted by code.

Codes are a family and a number: TFD tf.data, TFF tf.function, VEC vectorisation, NPY NumPy, KER Keras, OPS graphs and
sessions of version 1, DEV devices, LIB versions of libraries .
"""

from __future__ import annotations

from stepscope.checker.rule import Rule
from stepscope.checker.rules import (
    changing_python_argument,
    graph_ops_in_loop,
    repeated_predict,
    sequential_stateful_map,
)

ALL: tuple[Rule, ...] = (
    repeated_predict.RULE,
    graph_ops_in_loop.RULE,
    sequential_stateful_map.RULE,
    changing_python_argument.RULE,
)
