"""The numbers of one session."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.sessions import CWD, MS, SCRIPT, S, filled
from tests.use_cases.compared_sessions import session

from stepscope.derive.view import SessionView
from stepscope.diagnosis import analyze
from stepscope.model.report.op_table import MakerTime, OpTable
from stepscope.model.session.session import Session
from stepscope.tables.records import ProcessTable
from stepscope.use_cases.comparing import numbers
from stepscope.use_cases.comparing.numbers import Line


def _of(made: Session) -> numbers.SessionNumbers:
    return numbers.of_view(Path("a"), SessionView(made))


def test_steps_samples_and_components() -> None:
    """Steady steps of 100 ms with 32 samples, of which 20 ms are input wait."""
    found = _of(session())
    assert found.durations is not None
    assert float(found.durations.mean()) == pytest.approx(100 * MS, rel=0.02)
    assert found.step_ns == pytest.approx(100 * MS, rel=0.02)
    assert found.sample_ns == pytest.approx(100 * MS / 32, rel=0.02)
    assert found.samples_per_step == 32
    assert float(found.parts["input-wait"].mean()) == pytest.approx(20 * MS)
    assert len(found.parts["call"]) == len(found.durations)


def test_memory_is_that_of_all_processes_at_once() -> None:
    """The peak of the sum, not the sum of the peaks."""
    at, pid, rss = np.array([[1, 1, 2, 2], [7, 8, 7, 8], [300, 100, 50, 200]], np.int64)
    table = filled(ProcessTable, 4, at_ns=at * S, pid=pid, rss_bytes=rss)
    assert _of(replace(session(), process=table)).memory_bytes == {"memory_peak": 400.0}


def test_op_time_is_of_a_step_and_by_line() -> None:
    """Two makers on one line are one row; a layer without a line is known by its name; without steps there is none."""
    made = session()
    makers = (
        MakerTime(file="train.py", line=5, function="load", types=("Read",), ns=3000, ratio=0.5),
        MakerTime(file="train.py", line=5, function="load", types=("Cast",), ns=1000, ratio=0.2),
        MakerTime(layer="dense", ns=500, ratio=0.1),
    )
    table = OpTable(trace="ops-001", steps=10, ns=5000, joined_ratio=1.0, makers=makers)
    report = msgspec.structs.replace(analyze.report_of(made), ops=table)
    found = numbers._ops(report, made)
    assert found is not None
    assert {key: one.value for key, one in found.items()} == {
        Line("", "load", "return read(path)"): 400.0,
        Line("", "dense", ""): 50.0,
    }
    assert numbers._ops(msgspec.structs.replace(report, ops=msgspec.structs.replace(table, steps=0)), made) is None


def test_line_without_source_is_known_by_its_number() -> None:
    """Its text is not in the session."""
    assert numbers._line(session(), f"{CWD}/other.py", 7, "f") == Line("other.py", "f", "line 7")
    assert numbers._line(session(), SCRIPT, 99, "f") == Line("", "f", "line 99")
    assert numbers._line(session(), SCRIPT, 0, "f") == Line("", "f", "code without a line")
