"""The process behind ``_warm``: imports TensorFlow once, runs one program per input line, prints the results.

Each program runs as ``__main__`` from a file (AutoGraph reads the source), in its own namespace, with seeds set and
TensorFlow's global switches reset.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import random
import runpy
import sys
import types
import warnings
from typing import TextIO

import keras
import numpy as np
import tensorflow as tf

MAX_DEPTH = 4
MAX_ITEMS = 4000
"""Elements of an array or container that are kept; a longer one is cut, with its length."""


def main() -> None:
    """Answer until the input ends; what the imports made is left out of each program's search for garbage."""
    gc.collect()
    gc.freeze()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        _answer(answers, run(str(json.loads(line)["path"])))


def _answer(answers: TextIO, answer: dict[str, object]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def run(path: str) -> dict[str, object]:
    """Run one program: its standard output, its public variables, and the error that ended it ("" for none)."""
    _reset()
    output = io.StringIO()
    kept: dict[str, object] = {}
    end = _End()
    with contextlib.redirect_stdout(output), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.argv = [path]
        with end:
            kept = runpy.run_path(path, run_name="__main__")
    error = end.error
    values = {} if error else {n: described(v) for n, v in sorted(kept.items()) if _is_public(n, v)}
    return {"stdout": output.getvalue(), "values": values, "error": error}


class _End:
    """Keeps the error that ended a program, so that the next one can run."""

    error = ""

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Keep the error, in one line; let Ctrl-C pass."""
        if error is None or isinstance(error, KeyboardInterrupt):
            return False
        self.error = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        return True


def _reset() -> None:
    """Reset what an earlier program may have changed for all that follow."""
    keras.backend.clear_session()
    tf.config.run_functions_eagerly(False)
    keras.utils.set_random_seed(0)
    random.seed(0)


def _is_public(name: str, value: object) -> bool:
    if name.startswith("_") or isinstance(value, types.ModuleType | type):
        return False
    return not callable(value) or isinstance(value, keras.Model)


def described(value: object, depth: int = 0) -> object:
    """A value as JSON, with its type: a fix that turns an array into a tensor makes a difference."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": value if np.isfinite(value) else str(value)}
    if isinstance(value, np.ndarray | np.generic):
        return {"array": str(value.dtype), "shape": list(value.shape), "of": _numbers(np.asarray(value))}
    if isinstance(value, tf.RaggedTensor | tf.Tensor | tf.Variable):
        return _tensor(value)
    return _of_objects(value, depth)


def _of_objects(value: object, depth: int) -> object:
    if isinstance(value, dict) and depth < MAX_DEPTH:
        return {"dict": [[repr(k), described(v, depth + 1)] for k, v in list(value.items())[:MAX_ITEMS]]}
    if isinstance(value, list | tuple) and depth < MAX_DEPTH:
        items = [described(v, depth + 1) for v in value[:MAX_ITEMS]]
        return {"list" if isinstance(value, list) else "tuple": items, "length": len(value)}
    if isinstance(value, set | frozenset):
        return {"set": sorted(repr(v) for v in value)}
    if isinstance(value, keras.Model):
        return {"model": [_numbers(np.asarray(w)) for w in value.get_weights()]}
    return {"object": "Dataset" if isinstance(value, tf.data.Dataset) else type(value).__name__}


def _tensor(value: tf.RaggedTensor | tf.Tensor | tf.Variable) -> object:
    if isinstance(value, tf.RaggedTensor):
        return {"ragged": value.dtype.name, "of": repr(value.to_list())}
    kind = "tensor" if isinstance(value, tf.Tensor) else "variable"
    if not hasattr(value, "numpy"):
        return {kind: value.dtype.name, "of": "symbolic"}
    try:
        array = value.numpy()
    except (NotImplementedError, AttributeError, TypeError, ValueError):  # of a graph
        return {kind: value.dtype.name, "of": "symbolic"}
    return {kind: value.dtype.name, "shape": list(value.shape), "of": _numbers(np.asarray(array))}


def _numbers(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> list[object]:
    flat = array.reshape(-1)[:MAX_ITEMS]
    if array.dtype.kind == "f" or array.dtype.name == "bfloat16":
        return [float(x) if np.isfinite(x) else str(x) for x in flat.astype("float64")]
    if array.dtype.kind in "iub":
        return list(flat.tolist())
    return [repr(x) for x in flat.tolist()]


if __name__ == "__main__":
    main()
