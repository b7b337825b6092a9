"""Programs and notebooks to fix."""

from __future__ import annotations

import json

PIPELINE = """\
import tensorflow as tf

def augment(x):
    return tf.image.random_hue(x, 0.1)  # noise

ds = tf.data.Dataset.range(9000).map(augment).interleave(tf.data.Dataset.from_tensors)
"""
CALL = "num_parallel_calls=tf.data.AUTOTUNE"
FIRST, SECOND = PIPELINE.split("\n\n", 1)


def book(*sources: str, as_list: bool = True, indent: int | None = 1) -> bytes:
    """A notebook with these code cells, a text cell first."""

    def lines(source: str) -> object:
        return source.splitlines(keepends=True) if as_list else source

    cells: list[dict[str, object]] = [{"cell_type": "markdown", "metadata": {}, "source": ["# Title é"]}]
    cells += [
        {"cell_type": "code", "execution_count": 3, "metadata": {"x": 1.50}, "outputs": [], "source": lines(source)}
        for source in sources
    ]
    data = {"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(data, indent=indent, ensure_ascii=False) + "\n").encode()
