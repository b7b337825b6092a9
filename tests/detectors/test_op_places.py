"""Places of findings about a device: the user's lines whose ops its kernels work for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.derive.graph_tables import Tables
from tests.derive.sessions import SCRIPT, Job
from tests.detectors.asking import find
from tests.detectors.graph_jobs import read
from tests.detectors.traced_jobs import many_kernels, on_gpu, transposed

DENSE, NORM = 21, 34
PRODUCT = ("volta_sgemm_128x64_nn", 0.0, 10.0, 60_000.0)


def graphs() -> Tables:
    """A step whose dense product is made at one line, its `where` and its convolution at another."""
    tables = Tables()
    graph = tables.graph()
    for name, line in (("MatMul", DENSE), ("Where", NORM), ("Conv", NORM)):
        graph.op(f"model/{name}", name, file=SCRIPT, line=line)
    return tables


@pytest.mark.parametrize(
    ("code", "job", "line"),
    [
        ("KRN003", lambda: on_gpu([PRODUCT], host_op=30_000), NORM),
        ("KRN004", lambda: on_gpu([PRODUCT], op="model/MatMul:MatMul"), DENSE),
        ("KRN005", lambda: many_kernels(18, op="model/Where:Where"), NORM),
        ("LAY001", lambda: transposed(20_000), NORM),
    ],
)
def test_the_line_that_made_the_op_is_named(code: str, job: Callable[[], Job], line: int) -> None:
    """By the graphs that were read: the op of the kernel, of the host's work, or that a transpose was put before."""
    made = job()
    read(made, graphs())
    (found,) = (f for f in find(made) if f.code == code)
    assert [(place.file, place.line) for place in found.where] == [("train.py", line)]
