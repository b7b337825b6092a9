"""Files of other people's tools, or rebuilt from their reports (shared/public, shared/surprises), as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.diagnosis.analyze import report_of
from stepscope.model.report.report import Report
from stepscope.store import open_session
from stepscope.use_cases.importing import import_files

SHARED = Path(__file__).resolve().parents[3] / "shared"
PUBLIC, SURPRISES = SHARED / "public" / "smallest", SHARED / "surprises" / "files"
pytestmark = [
    pytest.mark.skipif(not PUBLIC.is_dir(), reason="the shared public files are not beside this checkout"),
    pytest.mark.timeout(60),
]


ORT_RUNS = ("runs of the session", "(model_run)")


def _report(file: Path, tmp_path: Path) -> Report:
    return report_of(open_session(import_files([file], tmp_path / "s.stepscope").session))


@pytest.mark.parametrize(
    ("file", "how", "count", "median_ns"),
    [
        (PUBLIC / "ort_slow.json", ORT_RUNS, 20, 100_000_000),
        (PUBLIC / "ort_fast.json", ORT_RUNS, 200, 10_000_000),
        (PUBLIC / "record_function_no_steps.json", ("function calls", "train_step"), 40, 19_500_000),
        (SURPRISES / "ort.json", ORT_RUNS, 50, 1_000_000),
    ],
    ids=lambda one: one.stem if isinstance(one, Path) else None,
)
def test_loops_without_markers_have_steps(
    file: Path, how: tuple[str, str], count: int, median_ns: int, tmp_path: Path
) -> None:
    (trace,) = _report(file, tmp_path).op_traces
    assert [((s.how, s.name), s.count) for s in trace.steps] == [(how, count)]
    assert trace.steps[0].median_ns == pytest.approx(median_ns, rel=0.01)


def test_one_bad_name_costs_one_event(tmp_path: Path) -> None:
    report = _report(PUBLIC / "one_bad_name.json", tmp_path)
    assert report.op_traces[0].events == 100
    (note,) = [d.text for d in report.diagnostics if d.code == "DX123"]
    assert note.endswith("1 of its events")


def test_a_cut_gzip_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    report = _report(PUBLIC / "cut.json.gz", tmp_path)
    assert report.op_traces[0].events > 100
    assert any("its gzip stream has no end" in d.text for d in report.diagnostics)


AMD = SHARED / "public" / "22-amd-first-step" / "amd_trace__mi250_minitoy_train_ROCm6_2_kineto.json.gz"


def test_one_cold_step_is_no_finding(tmp_path: Path) -> None:
    """Of a real trace (MI250, ROCm 6.2): 6.54 of its 9.29 ms are one launch, the first use of a kernel."""
    report = _report(AMD, tmp_path)
    assert not report.findings
    assert {c.detector: c.outcome for c in report.checked}["KRN001"] == "undecided"


def test_an_exchange_that_is_an_annotation_on_another_thread_is_communication(tmp_path: Path) -> None:
    report = _report(PUBLIC / "gloo_annotations.json", tmp_path)
    assert report.traced is not None
    parts = {part.part: part.ratio for part in report.traced.parts}
    assert parts["collective"] == pytest.approx(0.85, abs=0.01)
