"""All rules, by hand, sorted by code.

Codes are a family and a number: TFD tf.data, TFF tf.function, VEC vectorisation, NPY NumPy, KER Keras, OPS graphs and
sessions of version 1, DEV devices, LIB versions of libraries .
"""

from __future__ import annotations

from stepscope.checker.rule import Rule
from stepscope.checker.rules import (
    changing_python_argument,
    graph_ops_in_loop,
    iterator_per_step,
    map_before_batch,
    one_file_at_a_time,
    parse_single_before_batch,
    python_file_loading,
    repeated_predict,
    sequential_stateful_map,
)

ALL: tuple[Rule, ...] = (
    repeated_predict.RULE,
    graph_ops_in_loop.RULE,
    sequential_stateful_map.RULE,
    map_before_batch.RULE,
    one_file_at_a_time.RULE,
    python_file_loading.RULE,
    parse_single_before_batch.RULE,
    iterator_per_step.RULE,
    changing_python_argument.RULE,
)
