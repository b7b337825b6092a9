"""Readable names of native code: short, and the frame that says whose work it is."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.tables.stacks import Frame

_OPENING, _CLOSING = "<(", ">)"
_QUALIFIERS = frozenset({"const", "volatile", "noexcept", "&", "&&"})
_ANONYMOUS = "(anonymous namespace)::"
_OWNERS = ("tensorflow::", "onnxruntime::", "torch::", "at::", "xla::", "pyarrow::", "arrow::")
_COMPUTES = ("::Compute", "::ComputeAsync")
_DEVICE = re.compile(r"tensorflow::\w*Device::.*")
_NOBODY = ("tensorflow::Shard", "tensorflow::ThreadPoolDevice", "tensorflow::(anonymous namespace)::ExecutorState")


@functools.lru_cache(maxsize=4096)
def short(function: str) -> str:
    """A C++ function without its return type, template arguments, parameters and clone suffix.

    >>> short("void tensorflow::ConcatCPU<float>(tensorflow::DeviceBase*) [clone .part.0]")
    'tensorflow::ConcatCPU'
    >>> short("[libc.so.6]")
    '[libc.so.6]'
    """
    if function.startswith("["):
        return function
    plain = function.partition(" [clone")[0].replace(_ANONYMOUS, "")
    depth = 0
    kept: list[str] = []
    for letter in plain:
        depth += (letter in _OPENING) - (letter in _CLOSING and depth > 0)
        if not depth and letter not in _CLOSING:
            kept.append(letter)
    words = [word for word in "".join(kept).split() if word not in _QUALIFIERS]
    return words[-1] if words else function


def computes(function: str) -> bool:
    """Whether an op computes in this function, as opposed to the device code that calls it."""
    name = short(function)
    return name.endswith(_COMPUTES) and not _DEVICE.fullmatch(name)


def owner(frames: Sequence[Frame]) -> str:
    """Short name of the innermost frame whose own name is a framework's, that is the op that a copy or a kernel works
    for; "" for none. ``frames``: root to leaf.
    """
    for frame in reversed(frames):
        name = short(frame.function)
        if name.startswith(_OWNERS) and not name.startswith(_NOBODY):
            return name
    return ""
