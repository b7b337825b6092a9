"""What is derived of real captures (shared/data/xplane) agrees with what is known of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from stepscope.derive.optrace.kernels.compilations import Change
from stepscope.derive.optrace.trace_view import OpView
from stepscope.derive.view import SessionView
from stepscope.detectors import registry
from stepscope.detectors.base import run
from stepscope.model.session.session import Manifest, Session, StoredOpTrace
from stepscope.readers.xplane import xspace

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "xplane"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not beside this checkout")
FILES = ("gpu-multi-worker", "jax-cpu", "tf-cpu-input-bound", "tf-cpu-input-fixed", "tpu-inference")


@cache
def _view(name: str) -> OpView:
    return OpView(xspace.read_file(DATA / f"{name}.xplane.pb"))


@pytest.mark.parametrize("name", FILES)
def test_parts_and_paths_add_up_to_the_steps(name: str) -> None:
    view = _view(name)
    assert view.breakdown.per_step.sum(axis=1) == pytest.approx(view.periods.dur_ns, rel=1e-9)
    for path in view.paths:
        assert sum(segment.dur_ns for segment in path.segments) == view.periods.dur_ns[path.step]


def test_the_bound_pair_waits_for_its_python_map_and_the_fixed_one_does_not() -> None:
    bound, fixed = _view("tf-cpu-input-bound"), _view("tf-cpu-input-fixed")
    assert bound.breakdown.ratio("input-wait") > 0.5
    assert fixed.breakdown.ratio("input-wait") < 0.1
    assert bound.pipeline is not None
    assert bound.pipeline.blocking.type == "Map"
    assert bound.pipeline.per_batch(bound.pipeline.blocking.self_ns) == pytest.approx(25.8e6, rel=0.02)
    assert bound.gains()[0].what == ("PyFunc", "PyFunc")
    assert fixed.gains()[0].what[1] == "_MklMatMul"


def test_the_recompilation_of_step_6_is_told_with_its_cause() -> None:
    found = _view("jax-cpu").compiles
    last = found.found[-1]
    assert (found.steps, last.program, last.again) == ((6,), "jit_train_step", True)
    assert last.changes == (
        Change(parameter=2, before="f32[128,256]", now="f32[96,256]"),
        Change(parameter=3, before="f32[128,8]", now="f32[96,8]"),
    )
    assert found.extra_ns == pytest.approx(991e6, rel=0.01)
    assert _view("jax-cpu").breakdown.ratio("compile") > 0.9


def test_a_gpu_is_three_quarters_busy_and_most_of_the_rest_lies_between_its_kernels() -> None:
    view = _view("gpu-multi-worker")
    assert view.trace.planes[view.device].name == "/device:GPU:4"
    assert view.breakdown.ratio("device-compute") == pytest.approx(0.746, abs=0.002)
    assert view.breakdown.ratio("device-gap") > 0.1
    launches, kernels = view.launches, view.kernels
    assert launches is not None
    assert len(launches.known) == len(launches.work)
    assert kernels is not None
    assert (kernels.capability, len(kernels.row)) == (7, 665)
    assert [timeline.allocator for timeline in view.memory][:2] == ["GPU_6_bfc", "GPU_4_bfc"]


def test_tpu_steps_wait_for_the_host_s_memory_and_their_fusions_are_bound_by_memory() -> None:
    view = _view("tpu-inference")
    assert len(view.periods) == 99
    assert view.breakdown.ratio("copy-to-device") == pytest.approx(0.74, abs=0.01)
    assert view.breakdown.ratio("copy-from-device") == pytest.approx(0.23, abs=0.01)
    assert view.breakdown.ratio("copy-on-device") == 0
    assert {placed.bound for placed in view.roofline[:3]} == {"memory"}
    assert all(0.6 < placed.reached_ratio < 1 for placed in view.roofline[:3])


def _found(name: str) -> list[tuple[str, str]]:
    trace = _view(name).trace
    stored = StoredOpTrace(name="a", worker="", source=trace.source, load=lambda: trace)
    findings, _, failures = run(registry.ALL, SessionView(Session(manifest=Manifest(), op_traces=[stored])))
    assert failures == ()
    return [(finding.code, finding.title) for finding in findings]


def test_the_detectors_say_what_is_true_of_each_file_and_nothing_else() -> None:
    """The fixed twin gives no finding; the others give the one that is known of them."""
    (bound,), (jax,), (gpu,) = _found("tf-cpu-input-bound"), _found("jax-cpu"), _found("gpu-multi-worker")
    (tpu,) = _found("tpu-inference")
    assert bound[0] == "INP007"
    assert "Python" in bound[1]
    assert jax[0] == "GRF010"
    assert "step 6" in jax[1]
    assert "f32[128,256] became f32[96,256]" in jax[1]
    assert gpu[0] == "KRN005"
    assert _found("tf-cpu-input-fixed") == []
    assert tpu[0] == "KRN002"
    assert "waits 97 % of the step for arrays that the program keeps in the host's memory" in tpu[1]
    assert "15 GiB fetched and 15 GiB put back" in tpu[1]
