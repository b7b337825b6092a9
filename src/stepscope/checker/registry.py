"""All rules, by hand, sorted by code.

Codes are a family and a number: TFD tf.data, TFF tf.function, VEC vectorisation, NPY NumPy, KER Keras, OPS graphs and
sessions of version 1, DEV devices, LIB versions of libraries .
"""

from __future__ import annotations

from stepscope.checker.rule import Rule
from stepscope.checker.rules import (
    cached_repeats,
    changing_python_argument,
    forked_workers,
    generator_over_arrays,
    graph_ops_in_loop,
    iterator_per_step,
    map_before_batch,
    map_before_shard,
    misplaced_cache,
    missing_prefetch,
    one_file_at_a_time,
    parse_single_before_batch,
    python_file_loading,
    python_function_in_map,
    repeated_predict,
    rows_in_python,
    sequential_stateful_map,
    shuffle_after_batch,
    shuffled_images,
)

ALL: tuple[Rule, ...] = (
    repeated_predict.RULE,
    graph_ops_in_loop.RULE,
    sequential_stateful_map.RULE,
    map_before_batch.RULE,
    missing_prefetch.RULE,
    misplaced_cache.RULE,
    one_file_at_a_time.RULE,
    generator_over_arrays.RULE,
    python_function_in_map.RULE,
    python_file_loading.RULE,
    parse_single_before_batch.RULE,
    shuffle_after_batch.RULE,
    shuffled_images.RULE,
    cached_repeats.RULE,
    iterator_per_step.RULE,
    map_before_shard.RULE,
    rows_in_python.RULE,
    forked_workers.RULE,
    changing_python_argument.RULE,
)
