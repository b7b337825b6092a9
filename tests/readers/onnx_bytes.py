"""Models in ONNX's format, written by hand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from stepscope.readers.protobuf.codec import encode_bytes, encode_number

FLOAT, DOUBLE = 1, 11


def model(tensors: Mapping[str, npt.NDArray[np.float32]], *, raw: bool = True, kind: int = FLOAT) -> bytes:
    """A model with a Conv for each tensor, whose weights it is. ``raw``: as bytes, else as packed floats."""
    graph = b""
    for name, values in tensors.items():
        node = encode_bytes(1, b"x") + encode_bytes(1, name.encode()) + encode_bytes(2, b"y")
        graph += encode_bytes(1, node + encode_bytes(3, f"{name}_conv".encode()) + encode_bytes(4, b"Conv"))
        data = encode_bytes(9 if raw else 4, values.tobytes())
        graph += encode_bytes(
            5, encode_number(1, values.size) + encode_number(2, kind) + encode_bytes(8, name.encode()) + data
        )
    return encode_number(1, 8) + encode_bytes(7, graph + encode_bytes(2, b"g"))
