"""Interventions on pipelines of tf.data."""

from __future__ import annotations

from stepscope.experiments.intervention import TF_DATA, Intervention, made

OF_INPUT: tuple[Intervention, ...] = (
    made(
        "gain",
        "parallel-map",
        "input-wait",
        text="Runs the maps of tf.data pipelines in parallel that run one element at a time.",
        limits="Python in a map still runs in one thread at a time. Random numbers come in another order.",
        lasting=".map(..., num_parallel_calls=tf.data.AUTOTUNE)",
        keeps=True,
        on=TF_DATA,
    ),
    made(
        "gain",
        "prefetch",
        "input-wait",
        text="Prepares the next batches while a step computes: prefetch at the end of tf.data pipelines.",
        limits="Helps only where the input and the step do not need the same cores.",
        lasting=".prefetch(tf.data.AUTOTUNE) at the end of the pipeline",
        keeps=True,
        on=TF_DATA,
    ),
    made(
        "gain",
        "cache-input",
        "input-wait",
        text="Keeps what the last map of a tf.data pipeline gives in memory, filled before the first step.",
        limits="Needs memory for an epoch; not where the dataset repeats before its last map, or if an epoch takes "
        "more than 30 s. Random changes of the data become the same in each epoch.",
        lasting=".cache() after the last .map() that gives the same in each epoch",
        on=TF_DATA,
    ),
    made(
        "gain",
        "input-edits",
        "input-wait",
        argument="FILE:EDIT;EDIT..., as the part Input of a report gives them: filter@16<map@15, map@15+cache",
        text="Makes the program's tf.data chains with edits: calls in another order, with a cache, a prefetch or "
        "parallel calls, or left out.",
        limits="Only where the calls stand in one chain that fit or a loop consumes, and the elements keep their types "
        "and shapes. Whether a filter needs what a map makes, and whether data are the same in each pass, is not "
        "checked. Caches are filled before the first step.",
        lasting="the diff of the report's part Input, which has these edits: ARGUMENT",
        on=TF_DATA,
    ),
    made(
        "gain",
        "private-threads",
        "input-wait",
        "call",
        text="tf.data pipelines run in threads of their own, one for each core that the job may use.",
        limits="Not Python in a map, which runs in one thread at a time anyway.",
        lasting="options.threading.private_threadpool_size = N, dataset.with_options(options)",
        keeps=True,
        on=TF_DATA,
    ),
    made(
        "ceiling",
        "without-stage",
        "input-wait",
        argument="map, filter, shuffle ..., or FILE:LINE of one transformation",
        text="Leaves transformations of tf.data pipelines out.",
        limits="Only where the elements keep their type and shape. A cache that is left out makes the job slower.",
        lasting="this transformation: a cheaper one, in parallel, or once for all epochs",
        on=TF_DATA,
    ),
)
