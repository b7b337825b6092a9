"""Graphs for pictures: one with every kind of trouble, and two to compare."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.stack_profiles import of_samples, of_text

from stepscope.report.flame.graph import ComparedProfiles, Graph, compare, graph
from stepscope.tables.findings import Diagnostic
from stepscope.tables.stacks import Frame, FrameKind, StackFlag, StackProfile, Thread

HOSTILE = '</script><script>alert("x")</script>&<b onload=x>\u202e\x1b[31m;\n'
S = 1_000_000_000


def sampled() -> StackProfile:
    """Ten seconds of two threads: Python, TensorFlow, the kernel; whole, truncated, nameless, hostile."""
    python = [
        Frame("<module>", "/job/train.py", 1, kind=FrameKind.PYTHON),
        Frame("step", "/job/train.py", 41, kind=FrameKind.PYTHON),
    ]
    run = Frame("tensorflow::Executor::Run(long)", module="/x/libtensorflow_cc.so.2", kind=FrameKind.NATIVE)
    clear = Frame("clear_page_erms", module="[kernel]", kind=FrameKind.KERNEL)
    nameless = Frame("[libz.so.1]", module="/lib/libz.so.1", kind=FrameKind.NATIVE, resolved=False)
    evil = Frame(HOSTILE, f"/job/{HOSTILE}.py", 3, kind=FrameKind.PYTHON)
    kinds = [
        ([*python, run], StackFlag.WHOLE, 0),
        ([*python, run, clear], StackFlag.WHOLE, 0),
        ([*python[:1], python[1]._replace(line=42), run], StackFlag.WHOLE, 0),
        ([nameless], StackFlag.TRUNCATED, 1),
        ([*python, evil], StackFlag.WHOLE, 1),
    ]
    rows = [(i * S // 10, *kinds[i % len(kinds)]) for i in range(100)]
    profile = of_samples(
        [(at, frames) for at, frames, _, _ in rows],
        threads=[thread for *_, thread in rows],
        flags=[int(flag) for _, _, flag, _ in rows],
    )
    return replace(
        profile,
        samples=replace(profile.samples, weight=np.full(100, 1e7)),
        unit="ns",
        threads=(Thread(7, 7, "MainThread"), Thread(7, 8, f"pool{HOSTILE}")),
        lost=3,
        diagnostics=(Diagnostic(code="DX130", text=f"left out {HOSTILE}"),),
    )


@pytest.fixture(scope="session")
def shown() -> Graph:
    """One profile."""
    return graph(sampled(), source=f"job{HOSTILE}.stepscope", window="100 steady steps of Keras fit")


@pytest.fixture(scope="session")
def pair() -> Callable[..., ComparedProfiles]:
    """Two profiles; a tower that goes, or nothing at all, between them."""

    def made(*, differs: bool) -> ComparedProfiles:
        base = {"main;step;matmul": 400, "main;input;decode": 201, "main;a": 10, "main;b": 11, "main;c": 7}
        before = base | ({"main;step;asm_exc_page_fault;clear_page": 300} if differs else {})
        one, other = (graph(of_text(stacks), source=name) for stacks, name in ((before, "before"), (base, "after")))
        return compare(one, other, basis="work", work=(1.0, 1.0))

    return made
