"""GRF023 denormal-weights: its fixtures, and profiles of ONNX Runtime."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.derive.sessions import MS, SCRIPT, Job
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures, look
from tests.detectors.jobs import PERIOD, STEPS, nothing, train_loop

from stepscope.detectors.graph.denormal_weights import DETECTOR
from stepscope.model.log.events import InferenceSession
from stepscope.model.report.report import Report
from stepscope.report.brief import titles
from stepscope.sessions.analysis import analyze
from stepscope.tables.findings import Finding
from stepscope.tables.nearby import ModelWeights, NodeWeights
from stepscope.use_cases.importing import import_files
from stepscope.wire.kinds import Kind

LINE = 12


def serving(denormal: int, *, run: int = 90 * MS, provider: str = "CPUExecutionProvider", seen: bool = True) -> Job:
    """Runs of a model of two convolutions of 10,000 weights each; ``denormal``: of the second."""
    job = Job()
    job.framework("onnxruntime", "1.32.0")
    job.event(InferenceSession(model="face.onnx", providers=[provider], file=SCRIPT, line=LINE, function="main"))
    job.call(Kind.INFERENCE, "face.onnx", call_file=SCRIPT, call_line=20).every(PERIOD, STEPS, dur=run, arg=1)
    worst = NodeWeights(node="last_conv", op="Conv", floats=10_000, denormal=denormal)
    weights = ModelWeights(model="face.onnx", floats=20_000, denormal=denormal, nodes=(worst,) if denormal else ())
    job.models = (weights,) if seen else ()
    return job


FIXTURES = Fixtures(
    firing=lambda: serving(1_000),
    expected=Expected(
        severity="medium",
        cost=0.0,
        basis="unknown",
        where=(("train.py", LINE),),
        metrics=("denormal_ratio", "denormal_weights", "run_ratio"),
        title=("5.0 %", "face.onnx", "denormal", "last_conv"),
        introduced="model building",
        exposed="prediction",
        pipeline_stage="forward-backward",
        remedy="denormal-as-zero",
    ),
    silent=lambda: serving(0),
    not_applicable=nothing,
    missing="steps",
    below=lambda: serving(9),
    at=lambda: serving(10),
    edges={"min_run_ratio": Edge(below=lambda: serving(1_000, run=9 * MS), at=lambda: serving(1_000, run=11 * MS))},
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_the_cost_is_at_most_the_runs() -> None:
    """What the numbers cost depends on the CPU."""
    ((found,), _) = look(DETECTOR, serving(1_000))
    assert found.cost.low == 0.0
    assert found.cost.high == pytest.approx(0.9, abs=0.01)


def test_a_program_that_names_the_setting_has_it() -> None:
    """It is advised nothing that it does already."""
    job = serving(1_000)
    job.sources[SCRIPT] = 'options.add_session_config_entry("session.set_denormal_as_zero", "1")\n'
    assert look(DETECTOR, job)[0] == ()


def test_a_device_computes_with_such_numbers_at_full_speed() -> None:
    assert look(DETECTOR, serving(1_000, provider="CUDAExecutionProvider"))[0] == ()


def test_clear_is_said_only_of_a_file_that_was_read() -> None:
    """And of no other framework."""
    _, checked = look(DETECTOR, serving(1_000, seen=False))
    assert (checked.outcome, checked.hint) == ("not-applicable", "no file of the model was read near the job")
    job = train_loop(90 * MS)
    job.framework("torch", "2.13.0")
    assert look(DETECTOR, job)[1].outcome == "not-applicable"


Node = tuple[str, str, list[int], list[int], list[int], int]
"""Name, type, shapes of input, weights (none: ONNX Runtime has packed them) and output, and time in us."""
MANY_ROWS: Node = ("prompt", "MatMul", [30, 4096], [4096, 4096], [30, 4096], 8_000)
FAST: Node = ("stage1", "Conv", [1, 32, 40, 40], [64, 32, 3, 3], [1, 64, 40, 40], 300)


def profile(folder: Path, nodes: Sequence[Node], runs: int = 5) -> Report:
    """The report of a profile in the form of ONNX Runtime 1.32.0."""
    events, at = [], 1000
    for _ in range(runs):
        begin = at
        for name, op, given, weights, made, dur in nodes:
            shapes = [{"float": one} for one in (given, weights) if one]
            args = {"op_name": op, "input_type_shape": shapes, "output_type_shape": [{"float": made}]}
            args["provider"] = "CPUExecutionProvider"
            common = {"pid": 1, "tid": 1, "ph": "X"}
            events.append({**common, "cat": "Node", "name": f"{name}_kernel_time", "ts": at, "dur": dur, "args": args})
            at += dur
        events.append({**common, "cat": "Session", "name": "model_run", "ts": begin, "dur": at - begin, "args": {}})
        at += 50
    path = folder / "profile.json"
    path.write_text(json.dumps(events))
    return analyze(import_files((path,), folder / "p.stepscope").session)


def found_in(report: Report) -> list[Finding]:
    return [one for one in report.findings if one.code == "GRF023"]


@pytest.mark.parametrize(
    "slow",
    [
        ("stage3", "Conv", [1, 64, 20, 20], [128, 64, 3, 3], [1, 128, 20, 20], 40_000),
        ("stage3", "Conv", [1, 64, 20, 20], [64, 64, 3, 3], [1, 64, 20, 20], 9_000),
        ("stage3", "Conv", [1, 16, 80, 80], [16, 16, 5, 5], [1, 16, 80, 80], 15_000),
    ],
)
def test_a_node_of_a_profile_that_its_size_does_not_explain(slow: Node, tmp_path: Path) -> None:
    (found,) = found_in(profile(tmp_path, [FAST, slow]))
    assert found.title.startswith("denormal numbers slow down stage3 (Conv): ")
    assert titles.title(found) == "denormal numbers slow down stage3 (Conv)"
    assert (found.remedies[0].id, found.cost.basis) == ("denormal-as-zero", "modelled")
    assert found.cost.ratio > 0.9


def test_products_whose_weights_are_packed(tmp_path: Path) -> None:
    """ONNX Runtime leaves their shape out: the input says how many multiplications each result needs."""
    fast: Node = ("first", "MatMul", [8, 512], [], [8, 512], 60)
    slow: Node = ("second", "MatMul", [8, 512], [], [8, 256], 2_000)
    (found,) = found_in(profile(tmp_path, [fast, slow]))
    assert "second (MatMul)" in found.title


@pytest.mark.parametrize(
    ("nodes", "outcome"),
    [
        ([FAST, ("stage3", "Conv", [1, 64, 20, 20], [128, 64, 3, 3], [1, 128, 20, 20], 2_000)], "clear"),
        ([FAST, ("depth", "Conv", [1, 64, 40, 40], [64, 1, 3, 3], [1, 64, 40, 40], 3_000)], "clear"),
        ([MANY_ROWS, ("one_row", "MatMul", [1, 4096], [4096, 4096], [1, 4096], 8_000)], "clear"),
        ([FAST, ("pooled", "Conv", [1, 512, 1, 1], [1024, 512, 3, 3], [1, 1024, 1, 1], 6_000)], "clear"),
        ([FAST, ("tiny", "Conv", [1, 1, 4, 4], [1, 1, 3, 3], [1, 1, 4, 4], 3_000)], "undecided"),
        ([FAST], "undecided"),
        ([FAST, ("quantised", "QLinearConv", [], [], [1, 64, 40, 40], 90_000)], "undecided"),
    ],
)
def test_what_sizes_explain_and_what_has_no_like_is_not_told(nodes: list[Node], outcome: str, tmp_path: Path) -> None:
    """Ten times as slow, one channel at a time, one row for all weights, little work, no other node, other types."""
    report = profile(tmp_path, nodes)
    assert found_in(report) == []
    (checked,) = (one for one in report.checked if one.detector == "GRF023")
    assert checked.outcome == outcome
