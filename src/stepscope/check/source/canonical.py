"""One spelling for each name of TensorFlow and Keras, whichever module it was imported from.

``tf.keras.X``, ``tensorflow.python.keras.X`` and ``keras.X`` become ``keras.X``; ``tensorflow.compat.v1.X`` becomes
``tensorflow.X``, as do names of version 1 that version 2 renamed.
"""

from __future__ import annotations

from functools import lru_cache

_ROOTS = (
    ("tensorflow_core.", "tensorflow."),
    ("tensorflow._api.v2.", "tensorflow."),
    ("tensorflow._api.v1.", "tensorflow."),
    ("tensorflow.compat.v1.", "tensorflow."),
    ("tensorflow.compat.v2.", "tensorflow."),
    ("tensorflow.python.keras.", "keras."),
    ("tensorflow.contrib.keras.", "keras."),
    ("tensorflow.keras.", "keras."),
    ("tf_keras.", "keras."),
    ("keras._tf_keras.keras.", "keras."),
    ("keras.api._v2.keras.", "keras."),
    ("keras.api._v1.keras.", "keras."),
    ("keras.api.", "keras."),
    ("keras.src.", "keras."),
    ("keras.python.", "keras."),
)
_EXACT = {
    "keras.models.Model": "keras.Model",
    "keras.models.Sequential": "keras.Sequential",
    "keras.models.Functional": "keras.Model",
    "keras.engine.training.Model": "keras.Model",
    "keras.engine.Model": "keras.Model",
    "keras.engine.sequential.Sequential": "keras.Sequential",
    "keras.layers.Layer": "keras.Layer",
    "keras.engine.base_layer.Layer": "keras.Layer",
    "keras.engine.topology.Layer": "keras.Layer",
    "keras.saving.load_model": "keras.models.load_model",
    "keras.saving.save.load_model": "keras.models.load_model",
    "tensorflow.data.experimental.AUTOTUNE": "tensorflow.data.AUTOTUNE",
    "tensorflow.contrib.data.AUTOTUNE": "tensorflow.data.AUTOTUNE",
    "tensorflow.contrib.eager.defun": "tensorflow.function",
    "tensorflow.random_uniform": "tensorflow.random.uniform",
    "tensorflow.random_normal": "tensorflow.random.normal",
    "tensorflow.truncated_normal": "tensorflow.random.truncated_normal",
    "tensorflow.random.truncated_normal": "tensorflow.random.truncated_normal",
    "tensorflow.random_shuffle": "tensorflow.random.shuffle",
    "tensorflow.multinomial": "tensorflow.random.categorical",
    "tensorflow.random_crop": "tensorflow.image.random_crop",
    "tensorflow.random.crop": "tensorflow.image.random_crop",
    "tensorflow.read_file": "tensorflow.io.read_file",
    "tensorflow.decode_raw": "tensorflow.io.decode_raw",
    "tensorflow.parse_single_example": "tensorflow.io.parse_single_example",
    "tensorflow.parse_example": "tensorflow.io.parse_example",
    "tensorflow.image.decode_jpeg": "tensorflow.io.decode_jpeg",
    "tensorflow.image.decode_png": "tensorflow.io.decode_png",
    "tensorflow.image.decode_image": "tensorflow.io.decode_image",
    "tensorflow.config.experimental_run_functions_eagerly": "tensorflow.config.run_functions_eagerly",
    "tensorflow.contrib.data.map_and_batch": "tensorflow.data.experimental.map_and_batch",
    "tensorflow.contrib.data.parallel_interleave": "tensorflow.data.experimental.parallel_interleave",
    "tensorflow.python.data.Dataset": "tensorflow.data.Dataset",
    "tensorflow.python.data.ops.dataset_ops.Dataset": "tensorflow.data.Dataset",
    "tensorflow.python.data.ops.dataset_ops.DatasetV1": "tensorflow.data.Dataset",
    "tensorflow.python.data.ops.dataset_ops.DatasetV2": "tensorflow.data.Dataset",
    "tensorflow.contrib.data.Dataset": "tensorflow.data.Dataset",
    "tensorflow.contrib.data.TFRecordDataset": "tensorflow.data.TFRecordDataset",
    "tensorflow.python.eager.def_function.function": "tensorflow.function",
    "tensorflow.python.eager.polymorphic_function.polymorphic_function.function": "tensorflow.function",
    "tensorflow.python.framework.ops.Tensor": "tensorflow.Tensor",
    "tensorflow.python.client.session.Session": "tensorflow.Session",
}
_MATH = "tensorflow.math."
_PLAIN_MATH = frozenset(
    "abs acos add add_n argmax argmin asin atan ceil cos cosh cumsum divide equal exp floor greater greater_equal less "
    "less_equal logical_and logical_not logical_or maximum minimum multiply negative not_equal pow reduce_all "
    "reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum round scalar_mul sigmoid "
    "sign sin sinh sqrt square subtract tan tanh truediv segment_sum unsorted_segment_sum top_k".split()
)


@lru_cache(maxsize=65536)
def canonical(name: str) -> str:
    """The canonical spelling of a qualified name.

    >>> canonical("tensorflow.compat.v1.keras.models.Model")
    'keras.Model'
    >>> canonical("tensorflow.compat.v1.random_uniform")
    'tensorflow.random.uniform'
    """
    if not name.startswith(("tensorflow", "tf_keras", "keras")):
        return name
    again = True
    while again:
        again = False
        for prefix, short in _ROOTS:
            if name.startswith(prefix) or name == prefix[:-1]:
                name = short + name[len(prefix) :] if len(name) >= len(prefix) else short[:-1]
                again = True
    if name.startswith(_MATH) and name[len(_MATH) :] in _PLAIN_MATH:
        name = "tensorflow." + name[len(_MATH) :]
    if name.startswith("keras.") and name not in _EXACT:
        name = _flat(name)
    return _EXACT.get(name, name)


def _flat(name: str) -> str:
    """Shorten ``keras.layers.core.Dense`` to ``keras.layers.Dense``: the modules between are private to Keras."""
    parts = name.split(".")
    first, last = parts[1], parts[-1]
    if last[:1].isupper() and first in {"layers", "callbacks", "losses", "metrics", "optimizers"}:
        return f"keras.{first}.{last}"
    if first == "engine" and last in {"Model", "Layer", "Sequential"}:
        return f"keras.{last}"
    return name
