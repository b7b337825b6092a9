"""Profiles of memory: the places that they name, and that moments do not add up."""

from __future__ import annotations

import numpy as np

from stepscope.derive.stacks import memory_stacks
from stepscope.tables import made_frames
from stepscope.tables.stacks import Frame, FrameKind, SampleTable, StackBuilder, StackProfile

USER = Frame("keep", "/home/me/train.py", 41, kind=FrameKind.PYTHON)
LIBRARY = Frame("fill", "/usr/lib/python3.11/site-packages/numpy/core.py", 7, kind=FrameKind.PYTHON)
OURS = Frame("call", "/run/job/agent/guard.py", 3, kind=FrameKind.PYTHON)
NATIVE = Frame("malloc", module="/lib/libc.so.6", kind=FrameKind.NATIVE)
WORKS = Frame("tensorflow::Compute", module="/x/libtensorflow.so", kind=FrameKind.NATIVE)
COPIES = Frame("__memmove_avx512", module="/lib/libc.so.6", kind=FrameKind.NATIVE)
FAULT = Frame("asm_exc_page_fault", module="[kernel]", kind=FrameKind.KERNEL)


def profile(event: str, *rows: tuple[tuple[Frame, ...], float]) -> StackProfile:
    """A profile of stacks, root to leaf, with their bytes."""
    builder = StackBuilder()
    stacks = np.array([builder.stack_of(frames) for frames, _ in rows], np.int64)
    none = np.zeros(len(rows), np.int64)
    weight = np.array([size for _, size in rows], np.float64)
    samples = SampleTable(
        at_ns=none, thread=none - 1, stack=stacks, weight=weight, count=none + 1, flags=none, op_thread=none
    )
    return StackProfile(event=event, unit="bytes", frames=builder.frames, stacks=builder.stacks, samples=samples)


def test_a_place_is_the_innermost_line_of_the_user() -> None:
    """Else the innermost function of a library's Python, else of native code that works; never an allocator's."""
    made = profile(
        made_frames.GROWTH,
        ((USER, LIBRARY, NATIVE, FAULT), 5.0),
        ((OURS, LIBRARY, FAULT), 3.0),
        ((WORKS, NATIVE, FAULT), 2.0),
        ((made_frames.BEFORE,), 1.0),
        ((WORKS, COPIES, FAULT), 1.5),
    )
    assert memory_stacks.places(made, "/run/job") == [
        ("train.py:41 keep", 5.0),
        ("tensorflow::Compute", 3.5),
        ("fill (numpy/core.py:7)", 3.0),
        ("[there before the capture]", 1.0),
    ]
    assert memory_stacks.shares(made, "/run/job")[0] == ("train.py:41 keep", 5.0 / 12.5)


def test_of_several_highest_moments_one_is_kept() -> None:
    """Growth of several captures adds up, moments do not."""
    low, high = profile(made_frames.HIGHEST, ((USER,), 1.0)), profile(made_frames.HIGHEST, ((USER,), 2.0))
    grown = profile(made_frames.GROWTH, ((USER,), 1.0))
    assert memory_stacks.highest([low, grown, high, grown]) == [grown, high, grown]
