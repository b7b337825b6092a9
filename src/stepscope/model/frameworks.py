"""Frameworks of jobs: their words, and the parts that a job has because of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

TITLES = {"tensorflow": "TensorFlow", "onnxruntime": "ONNX Runtime", "torch": "PyTorch", "jax": "JAX", "numpy": "NumPy"}
"""Names in reports of what computes, by package."""
PLAIN = "a program without a framework"
NOT_FOR = "not applicable to "
"""Begin of the hint of a detector that cannot look in the job's framework."""
KERAS = "keras"
PYTHON = "python"
"""Part of every job."""
TF_DATA = "tf.data"
TORCH_DATA = "torch.data"
"""The input pipelines of TensorFlow and PyTorch, which may feed any framework."""
LEGACY_KERAS = "tf_keras"
_BROUGHT = {KERAS: KERAS, LEGACY_KERAS: KERAS, "tensorflow": TF_DATA, "torch": TORCH_DATA}
"""Parts of a job that an imported package brings, whatever computes."""
_NAMED = re.compile(r"(?:^|, | on )(\w+)")
_BACKEND = re.compile(r"\bkeras \S+ on (\w+)")


def parts(computes: Collection[str], imported: Collection[str]) -> frozenset[str]:
    """What can be looked at and changed in a job: what computes, and what the imported packages bring along."""
    return frozenset({PYTHON, *computes, *(_BROUGHT[name] for name in imported if name in _BROUGHT)})


def backend_of(framework: str) -> str:
    """The backend of ``SessionSummary.framework``, if Keras uses another one than TensorFlow: ``jax``."""
    found = _BACKEND.search(framework)
    return found[1] if found is not None else ""


def parts_of(framework: str) -> frozenset[str]:
    """The parts by ``SessionSummary.framework``; none if it does not say."""
    if not framework:
        return frozenset()
    imported, backend = set(_NAMED.findall(framework)), backend_of(framework)
    return parts({backend} if backend else imported & TITLES.keys(), imported)
