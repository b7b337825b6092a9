"""What frameworks do at the start: devices and compilation, by frames; first runs of graphs, by what is left."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MAIN, MS, SCRIPT, Frame, S
from tests.detectors.jobs import PERIOD, train_loop

from stepscope.derive.ledger import start_work
from stepscope.derive.ledger.life import between
from stepscope.derive.ledger.part import LedgerPart


@pytest.mark.parametrize(
    ("file", "function", "what"),
    [
        ("/env/tensorflow/python/eager/context.py", "Context.ensure_initialized", start_work.DEVICE),
        ("/env/torch/cuda/__init__.py", "_lazy_init", start_work.DEVICE),
        ("/env/jax/_src/xla_bridge.py", "_init_backend", start_work.DEVICE),
        ("/env/jax/_src/compiler.py", "backend_compile_and_load", start_work.COMPILING),
        ("/env/torch/_dynamo/convert_frame.py", "ConvertFrameAssert._compile", start_work.COMPILING),
        ("/env/jax/_src/api.py", "cache_miss", ""),
    ],
)
def test_frames_that_say_it(file: str, function: str, what: str) -> None:
    """From the first sample in such a function to the last, within the part."""
    job = train_loop(80 * MS, offset=3 * S)
    job.samples(range(0, S, 50 * MS), Frame(SCRIPT, "main", 3))
    job.samples(range(S, 2 * S, 50 * MS), Frame(SCRIPT, "main", 4), Frame(file, function, 9, own=False))
    worker = job.view().workers[0]
    part = LedgerPart(phase="building", ns=3 * S, spans=between(0, 3 * S))
    assert start_work.of(worker, (MAIN,), part) == ({what: S} if what else {})


def test_first_runs_are_what_is_left() -> None:
    """Of first steps without tracing and the time of as many usual steps; never less than nothing."""
    steps = train_loop(80 * MS).view().steps
    assert steps is not None
    part = LedgerPart(phase="first-steps", ns=5 * S, count=2, spans=between(0, 5 * S))
    usual = int((steps.ends - steps.starts)[5])
    assert 0 < usual <= PERIOD
    assert start_work.first_runs(steps, part, S) == 4 * S - 2 * usual
    assert start_work.first_runs(steps, part, 6 * S) == 0
