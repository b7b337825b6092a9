"""Interventions on parts of what compiled functions compute, and the look at what they compute."""

from __future__ import annotations

from stepscope.experiments.intervention import Intervention, made

OF_COMPUTE: tuple[Intervention, ...] = (
    made(
        "ceiling",
        "without-ops",
        "call",
        argument="names of ops of compiled functions, with + between them",
        text="Ops give ones of their shape, and nothing is computed for them: the most that a way around them brings.",
        limits="Their own gradients are still computed where a tape makes them; a program that checks its numbers "
        "fails. An op whose shape is known only when it runs stays.",
        lasting="what the value trial says of these ops: --try values",
    ),
    made(
        "ceiling",
        "without-lines",
        "call",
        argument="FILE:LINE or FILE:FIRST-LAST; the line of a def means its function",
        text="What these lines make in compiled functions and in functions that a dataset maps is not computed, nor "
        "its gradients: results are filled with one number. What the lines need and what needs their results is "
        "computed as before.",
        limits="Not where a shape is known only when it runs, updates of variables, look-ups in tables, or Python. A "
        "program that needs the right numbers to go on, or checks them, fails or takes another way.",
        lasting="these lines: compute them once, on less, elsewhere, or not at all",
    ),
    made(
        "gain",
        "small-kernels",
        "call",
        text="Convolutions of Keras with kernels of 9 x 9 and more get kernels of 3 x 3.",
        limits="Not with strides, dilations, groups or padding that is not 'same'. The network sees less and may learn "
        "less; 3 x 3 kernels in a row that see as far save less.",
        lasting="kernel_size=3, or several 3 x 3 convolutions in a row, in these layers; compare what the model learns",
    ),
    made(
        "look",
        "values",
        "call",
        text="Looks at what compiled steps compute, ten times as they come and four times on the same batch: the same "
        "twice, the same in all steps, what depends on the batch alone, zeros, padding, equal rows, wide types.",
        limits="tf.functions and sessions that the program calls on its main thread; not what runs eagerly, in XLA, or "
        "in a tf.data pipeline. At most 400 tensors of a function. Its claims are timed by without-ops.",
        lasting="the lines that the claims name",
    ),
)
"""A part of the catalogue (``experiments.interventions.ALL``)."""
