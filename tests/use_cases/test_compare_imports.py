"""``compare`` of imported traces: by their steps and ops; how long somebody recorded says nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from stepscope.model.report.compare import CompareReport
from stepscope.report import compare_text
from stepscope.use_cases import compare, importing
from stepscope.use_cases.comparing import numbers
from stepscope.use_cases.comparing.numbers import SessionNumbers

SHARED = Path(__file__).resolve().parents[3] / "shared" / "public" / "smallest"


def _event(name: str, at_us: float, us: float, **args: object) -> dict[str, object]:
    cat = "Node" if "op_name" in args else "Session"
    return {"cat": cat, "pid": 7, "tid": 7, "ts": at_us, "dur": us, "ph": "X", "name": name, "args": args}


def _profile(path: Path, ops_ms: dict[str, float], *, seconds: float) -> Path:
    """A profile as ONNX Runtime writes it, of a loop of fixed length: each run calls each op once."""
    run_ms = sum(ops_ms.values()) + 1
    events = [_event("session_initialization", 0, 5000)]
    for number in range(int(1000 * seconds / run_ms)):
        at = 10_000 + number * run_ms * 1000
        events.append(_event("model_run", at, run_ms * 1000))
        for name, ms in ops_ms.items():
            events.append(_event(f"{name}_kernel_time", at, ms * 1000, op_name=name, provider="CPUExecutionProvider"))
            at += ms * 1000
    path.write_text(json.dumps(events))
    return path


def _imported(path: Path) -> SessionNumbers:
    made = importing.import_files([path], path.with_suffix(".stepscope"))
    return numbers.of_path(made.session)


def _compared(tmp_path: Path, before: dict[str, float], after: dict[str, float]) -> CompareReport:
    sides = [
        _imported(_profile(tmp_path / f"{name}.json", ops, seconds=2.0)) for name, ops in (("a", before), ("b", after))
    ]
    return compare.of_numbers(sides[:1], sides[1:], 0.05)


@pytest.mark.parametrize(
    ("before", "after", "ratio", "word"),
    [
        ({"Conv": 95.0}, {"Conv": 9.5}, 0.1, "faster"),
        ({"Gemm": 4.0, "Relu": 1.0}, {"Gemm": 12.0, "Relu": 1.0}, 2.6, "slower"),
        ({"MatMul": 30.0, "Softmax": 10.0}, {"MatMul": 30.0, "Softmax": 10.0}, 1.0, "undecided"),
    ],
)
def test_loops_of_fixed_length_are_compared_by_their_work(
    tmp_path: Path, before: dict[str, float], after: dict[str, float], ratio: float, word: str
) -> None:
    """Both recordings last two seconds, whatever a run of the model takes."""
    report = _compared(tmp_path, before, after)
    assert report.main is not None
    assert report.basis in {"step", "ops"}
    assert report.main.ratio == pytest.approx(ratio, rel=0.2)  # a step holds a millisecond beside its ops
    assert report.main.verdict == word
    assert not any(one.name == "wall" for one in report.differences)
    calls = {one.name: one for one in report.differences if one.section == "op-calls"}
    for name, ms in before.items():
        (row,) = (one for key, one in calls.items() if key.lower() == name.lower())
        assert row.ratio == pytest.approx(after[name] / ms)
        assert row.basis == "ops"


def test_nothing_in_common_is_said(tmp_path: Path) -> None:
    """Two networks of other ops: without steps no time decides, and the gate cannot tell."""
    sides = [
        replace(_imported(_profile(tmp_path / f"{name}.json", {name: 20.0}, seconds=1.0)), durations=None, total=None)
        for name in ("Conv", "Gemm")
    ]
    report = compare.of_numbers(sides[:1], sides[1:], 0.05)
    assert (report.basis, report.main) == ("ops", None)
    assert "the sides have too few ops in common for a verdict" in report.notes
    assert report.gate is not None
    assert report.gate.outcome == "cannot-tell"
    assert "no time can be compared" in compare.render(report, "text")


def test_markers_are_steps(tmp_path: Path) -> None:
    """Steps that a recording shows are compared, not the ten seconds before they begin."""
    sides = []
    for name, ms, begin_s in (("a", 40, 0), ("b", 10, 10)):
        events = [_event("start", 0, 1000)]
        for number in range(30):
            at = begin_s * 1e6 + number * ms * 1000
            events.append({**_event(f"ProfilerStep#{number}", at, ms * 1000), "cat": "user_annotation"})
            events.append({**_event("aten::mm", at, 0.8 * ms * 1000), "cat": "cpu_op"})
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        sides.append(_imported(path))
    report = compare.of_numbers(sides[:1], sides[1:])
    assert report.basis == "step"
    assert report.main is not None
    assert (report.main.verdict, report.main.basis) == ("faster", "timed")
    assert report.main.ratio == pytest.approx(0.25)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not beside this checkout")
def test_profiles_of_the_shared_data(tmp_path: Path) -> None:
    """100 and 10 ms a run, from recordings of the same length."""
    sides = []
    for name in ("ort_slow", "ort_fast"):
        made = importing.import_files([SHARED / f"{name}.json"], tmp_path / f"{name}.stepscope")
        sides.append(numbers.of_path(made.session))
    report = compare.of_numbers(sides[:1], sides[1:])
    assert report.main is not None
    assert report.main.ratio == pytest.approx(0.1, rel=0.05)
    assert report.main.verdict == "faster"


def test_the_head_says_the_steps_of_each_side(tmp_path: Path) -> None:
    """They are compared, so they were seen; of what computed a file says nothing."""
    report = _compared(tmp_path, {"conv": 99}, {"conv": 9})
    assert [one.steps for one in (*report.before, *report.after)] == [19, 199]
    head = compare_text.text(report).splitlines()[:2]
    assert ["19 steps · (model_run)" in head[0], "199 steps · (model_run)" in head[1]] == [True, True]
    assert "none" not in "".join(head)
