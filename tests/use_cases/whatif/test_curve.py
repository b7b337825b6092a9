"""Curves in reports, and the memory that a job may hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.use_cases.whatif.fake_job import recorded

from stepscope.use_cases.whatif import curve, result

GIB = 1 << 30


def test_a_curve_has_its_points_the_knee_and_the_line_to_set(tmp_path: Path) -> None:
    """Four times the batch is as good as eight times; the unchanged job is one of the points."""
    factors = {"batch:1/2": 0.6, "batch:2": 1.5, "batch:4": 1.95, "batch:8": 2.0, "batch:16": 2.0, "batch:32": 2.0}
    runs, _ = recorded(tmp_path, factors)
    traced = curve.trace(runs, "batch")
    found = curve.report(runs, traced)
    assert [point.size for point in found.points] == [0.5, 1, 2, 4, 8, 16, 32]
    assert [point.trial for point in found.points][:3] == ["batch:1/2", "", "batch:2"]
    assert found.knee == "batch:4"
    assert found.lasting == "batch_size=128 (now 32), or the same in .batch(); tune the learning rate with it"
    assert found.points[3].rate == pytest.approx(1950, rel=0.01)
    assert found.points[1].rate == pytest.approx(1000, rel=0.01)
    assert found.points[3].low < 1 / 1.95 < found.points[3].high * 1.01
    assert {point.peak_bytes for point in found.points} == {300_000_000}
    report = result.build(runs, [], curves=[found])
    assert (report.results, report.rounds, report.curves[0].knee) == ((), 3, "batch:4")


def test_threads_have_the_line_with_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1, 2, 3})
    runs, _ = recorded(tmp_path, {"threads:2": 1.5, "threads:3": 1.2, "threads:4": 1.0}, fails=frozenset({"threads:1"}))
    found = curve.report(runs, curve.trace(runs, "threads"))
    assert [(point.trial, bool(point.rate)) for point in found.points] == [
        ("", True),
        ("threads:1", False),
        ("threads:2", True),
        ("threads:3", True),
        ("threads:4", True),
    ]
    assert found.points[1].note == "the run threads:1 ended with signal 9"
    assert found.lasting == "tf.config.threading.set_intra_op_parallelism_threads(2)"


def test_threads_that_are_as_fast_as_they_are_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest number that is as fast is the knee, and nothing is to be set."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    runs, _ = recorded(tmp_path, {"threads:1": 1.0, "threads:2": 1.02})
    found = curve.report(runs, curve.trace(runs, "threads"))
    assert (found.knee, found.lasting) == ("threads:1", "")


def test_without_a_better_size_there_is_no_line(tmp_path: Path) -> None:
    runs, _ = recorded(tmp_path, {"batch:1/2": 0.5})
    assert curve.report(runs, curve.trace(runs, "batch")).lasting == ""


@pytest.mark.parametrize(
    ("limit", "held", "cache", "available", "left"),
    [
        ("max", 0, 0, 10 * GIB, 10 * GIB),
        (str(8 * GIB), 3 * GIB, 1 * GIB, 10 * GIB, 6 * GIB),
        (str(8 * GIB), 3 * GIB, 1 * GIB, 2 * GIB, 2 * GIB),
        (str(2 * GIB), 3 * GIB, 0, 10 * GIB, 1),
    ],
)
def test_memory_is_what_the_control_group_and_the_machine_have_left(
    tmp_path: Path, limit: str, held: int, cache: int, available: int, left: int
) -> None:
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (tmp_path / "proc/meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable:  {available >> 10} kB\n")
    (group / "cgroup.controllers").write_text("memory\n")
    (group / "memory.max").write_text(limit)
    (group / "memory.current").write_text(str(held))
    (group / "memory.stat").write_text(f"anon 1\ninactive_file {cache}\nactive_file 0\n")
    assert curve.limit_bytes(tmp_path) == left


def test_unknown_memory_is_no_limit(tmp_path: Path) -> None:
    assert curve.limit_bytes(tmp_path) == 0
