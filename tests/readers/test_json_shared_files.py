"""Every Chrome, kineto, TF1 and ONNX Runtime file of the shared data reads with its stated truth."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stepscope.derive.optrace import op_times
from stepscope.derive.optrace.steps import traced_steps
from stepscope.derive.optrace.steps.traced_steps import StepKind
from stepscope.readers import run_metadata
from stepscope.readers.chrome import trace_events
from stepscope.readers.xplane import xspace
from stepscope.tables.optrace import Category

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not beside this checkout")
KINETO = sorted(json.loads((DATA / "kineto" / "expected.json").read_text())) if DATA.is_dir() else []
NEVER_RAN = {"amd-mi250-minitoy.json.gz": 1}
"""Markers at the end of a file of 49 us in which no op ran."""
BROKEN = {
    "end-event-with-empty-stack",
    "end-non-top-of-stack",
    "invalid-x-nesting",
    "mismatched-name",
    "not-enough-end-events",
    "only-begin-events",
    "too-many-end-events",
    "zero-duration-events",
}


@pytest.mark.parametrize("name", KINETO)
def test_a_kineto_file_agrees_with_its_truth(name: str) -> None:
    """Counts and sums of every category, and the steps."""
    truth = json.loads((DATA / "kineto" / "expected.json").read_text())[name]
    trace = trace_events.read_file(DATA / "kineto" / name)
    assert trace.source.format == "kineto"
    codes, texts = trace.texts("cat")
    dur = trace.events.dur_ps()
    for category, (count, total_us) in truth["cat_count_sum_us"].items():
        mine = codes == texts.index(category.lower())
        assert (int(mine.sum()), dur[mine].sum() / 1e6) == (count, pytest.approx(total_us, abs=0.01)), category
    instants = truth["ph"].get("i", 0)
    assert len(trace.events) == truth["ph"]["X"] + instants
    marked = [row for row in truth["steps_us"] if row[1] != "gpu_user_annotation"]
    marked = marked[: len(marked) - NEVER_RAN.get(name, 0)]
    steps = traced_steps.find(trace)
    found = dict(zip(steps[0].number.tolist(), steps[0].dur_ns.tolist(), strict=True)) if marked else {}
    assert found == {int(n.rpartition("#")[2]): pytest.approx(dur * 1e3, abs=2) for n, _, _, dur in marked}
    kernels = op_times.build(trace)
    collectives = (trace.categories() == Category.COLLECTIVE) & (
        codes == (texts.index("kernel") if "kernel" in texts else -2)
    )
    assert (int(collectives.sum()), dur[collectives].sum() / 1e6) == (
        truth["nccl_kernels"][0],
        pytest.approx(truth["nccl_kernels"][1], abs=0.01),
    )
    assert len(kernels) > 0


def test_the_json_of_a_capture_shows_what_its_xplane_shows() -> None:
    one = trace_events.read_file(DATA / "xplane" / "jax-cpu.trace.json.gz")
    other = xspace.read_file(DATA / "xplane" / "jax-cpu.xplane.pb", keep_noise=True)
    assert len(one.events) == len(other.events) == 2_339
    assert traced_steps.find(one)[0].dur_ns.tolist() == traced_steps.find(other)[0].dur_ns.tolist()


def test_run_metadata_agrees_with_its_truth() -> None:
    truth = json.loads((DATA / "tf1" / "expected.json").read_text())["devices"][0]
    trace = run_metadata.read_file(DATA / "tf1" / "run_metadata.pb")
    nodes = trace.categories() == Category.OP
    assert [plane.name for plane in trace.planes] == [truth["device"]]
    assert (int(nodes.sum()), int(trace.events.dur_ns[nodes].sum())) == (truth["nodes"], truth["sum_all_end_rel_ns"])
    names = {trace.strings[trace.metas.op_name[m]] for m in np.unique(trace.events.meta[nodes])}
    assert names == set(truth["names"])
    (run,) = traced_steps.find(trace)
    assert (run.how, len(run)) == (StepKind.RUN, 1)


def test_a_timeline_of_tensorflow_1_reads_its_nodes_and_leaves_out_its_objects() -> None:
    truth = json.loads((DATA / "tf1" / "expected.json").read_text())["timeline"]
    trace = trace_events.read_file(DATA / "tf1" / "timeline.json")
    assert (len(trace.events), int(trace.events.dur_ns.sum())) == (truth["ph"]["X"], truth["sum_dur_us"] * 1000)
    assert {d.reason: d.events for d in trace.dropped} == {"objects": 3 * 38, "counters": truth["ph"]["C"]}
    assert {row.name: row.type for row in op_times.build(trace).rows()}["MatMul"] == "_MklMatMul"


def test_the_profile_of_onnx_runtime_reads_its_nodes() -> None:
    truth = json.loads((DATA / "onnxruntime" / "expected.json").read_text())
    trace = trace_events.read_file(DATA / "onnxruntime" / "bert2-cpu.profile.json.gz")
    assert len(trace.events) == truth["events"]
    by_type: dict[str, list[int]] = {}
    for row in op_times.build(trace).rows():
        found = by_type.setdefault(row.type, [0, 0])
        found[0] += row.calls
        found[1] += row.total_ps // 1_000_000
    assert by_type == truth["op_count_sum_us"]


@pytest.mark.parametrize("path", sorted((DATA / "trace-event").glob("*.json")), ids=lambda p: p.stem)
def test_odd_traces_are_read_and_what_was_repaired_is_told(path: Path) -> None:
    trace = trace_events.read_file(path)
    assert bool(trace.diagnostics) == (path.stem in BROKEN)
    events = json.loads(path.read_text()) if "partial" not in path.stem else None
    if isinstance(events, dict):
        assert sum(d.events for d in trace.dropped) == len(events.get("samples", []))
    if path.stem == "invalid-x-nesting":
        assert len(trace.lines) == 2
    if path.stem.startswith("simple-partial"):
        assert len(trace.events) == 4
