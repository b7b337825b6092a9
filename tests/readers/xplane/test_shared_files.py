"""Every XSpace of the shared data reads with its stated truth; what is damaged is told in one line."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from stepscope.derive.optrace import op_times
from stepscope.derive.optrace.steps import traced_steps
from stepscope.derive.optrace.steps.traced_steps import StepKind
from stepscope.readers.xplane import xspace
from stepscope.tables.errors import FormatError
from stepscope.tables.optrace import LineKind, OpTrace, PlaneKind

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "xplane"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not beside this checkout")
FILES = ("gpu-multi-worker", "jax-cpu", "tf-cpu-input-bound", "tf-cpu-input-fixed", "tpu-inference")
RENAMED = {"level 0": "tf_op"}


def _read(name: str, *, keep_noise: bool = False) -> OpTrace:
    return xspace.read_file(DATA / f"{name}.xplane.pb", keep_noise=keep_noise)


@pytest.mark.parametrize("name", FILES)
def test_a_file_agrees_with_its_truth(name: str) -> None:
    """Planes, lines, events, exact sums of durations, starts, and how often each stat occurs."""
    truth = json.loads((DATA / "expected.json").read_text())[f"{name}.xplane.pb"]
    trace = _read(name, keep_noise=True)
    assert len(trace.events) == truth["total_events"]
    dur, start = trace.events.dur_ps(), trace.events.start_ns
    for plane, expected in zip(trace.planes, truth["planes"], strict=True):
        assert (plane.name, plane.events) == (expected["name"], expected["events"])
        assert plane.captured == (expected["events"] > 0)
        lines = [line for line in trace.lines if line.plane == plane.index]
        for line, stated in zip(lines, expected["lines"], strict=False):
            if "omitted_lines" in stated:
                rest = slice(line.first, trace.rows_of(plane)[1])
                assert (rest.stop - rest.start, dur[rest].sum()) == (stated["events"], stated["sum_duration_ps"])
                break
            assert (line.id, line.name) == (stated["id"], stated["name"])
            assert (line.last - line.first, dur[line.slice].sum()) == (stated["events"], stated["sum_duration_ps"])
            if line.last > line.first:
                assert start[line.first] == stated["timestamp_ns"] + stated["min_offset_ps"] // 1000
        first, last = trace.rows_of(plane)
        counts: Counter[str] = Counter()
        for stat, count in expected["event_stats"].items():
            counts[RENAMED.get(stat, stat)] += count
        for stat, count in counts.items():
            assert len(trace.stats.of_events(stat, first, last)) == count, stat


def test_what_is_left_out_is_counted() -> None:
    trace = _read("tf-cpu-input-bound")
    assert len(trace.events) + trace.dropped[0].events == 3_723
    assert trace.dropped[0].events == 2_019
    assert not any("ThreadpoolListener" in text for text in trace.strings)


def test_steps_are_the_stated_ones_first_and_last_flagged() -> None:
    bound = traced_steps.find(_read("tf-cpu-input-bound"))[0]
    expected = [23.9, 34.7, 23.1, 19.6, 20.9, 32.3, 10.3, 32.4, 50.9, 26.9, 36.5, 2.6]
    assert (bound.dur_ns / 1e6).round(1).tolist() == expected
    assert bound.edge.tolist() == [True, *[False] * 10, True]
    assert (bound.how, bound.name, bound.number.tolist()) == (StepKind.MARKER, "train", list(range(12)))
    jax = traced_steps.find(_read("jax-cpu"))[0]
    assert jax.dur_ns[6] / 1e6 == pytest.approx(994.7, abs=0.1)


def test_steps_of_devices_come_from_their_own_lines() -> None:
    gpu = traced_steps.find(_read("gpu-multi-worker"))
    assert [(s.name, s.how, s.number.tolist()) for s in gpu] == [
        ("/device:GPU:4", StepKind.DEVICE_LINE, [0]),
        ("/device:GPU:6", StepKind.DEVICE_LINE, [0]),
    ]
    assert [round(float(s.dur_ns[0]) / 1e6, 3) for s in gpu] == [19.865, 21.310]
    tpu = traced_steps.find(_read("tpu-inference"))
    assert [(len(s), s.how) for s in tpu] == [(100, StepKind.PROGRAM)] * 4
    assert all(s.name.startswith("jit_f(") for s in tpu)


def test_lines_are_known_for_what_they_are() -> None:
    trace = _read("gpu-multi-worker")
    kinds = {line.name: (line.kind, line.derived) for line in trace.lines if trace.planes[line.plane].ordinal == 4}
    assert kinds["Stream #134(Compute)"] == (LineKind.STREAM, False)
    assert kinds["TensorFlow Ops"] == (LineKind.FRAMEWORK_OPS, True)
    assert kinds["TensorFlow Name Scope"] == (LineKind.NAME_SCOPE, True)
    assert kinds["Steps"] == (LineKind.STEPS, True)
    assert [p.kind for p in trace.planes] == [PlaneKind.HOST, *[PlaneKind.GPU] * 8]
    tpu = _read("tpu-inference")
    assert tpu.ints("flops")[tpu.lines_of(LineKind.XLA_OPS)[0].slice].max() > 0


def test_op_time_of_a_gpu_is_the_time_of_its_kernels_and_copies() -> None:
    """665 kernels of 14.825 ms on the compute stream; name scopes and other derived lines add nothing."""
    trace = _read("gpu-multi-worker")
    stats = op_times.build(trace)
    plane = next(p for p in trace.planes if p.ordinal == 4)
    streams = [line for line in trace.lines if line.plane == plane.index and line.kind is LineKind.STREAM]
    total = sum(int(trace.events.dur_ps()[line.slice].sum()) for line in streams)
    assert stats.total_ps[stats.plane == plane.index].sum() == total
    random = [row for row in stats.rows() if row.plane == plane.index and row.type == "RandomUniform"]
    assert (sum(row.calls for row in random), sum(row.self_ps for row in random)) == (97, 3_946_474_000)
    assert random[0].name.endswith("dropout/random_uniform/RandomUniform")


def test_ops_of_xla_on_the_cpu_are_ops() -> None:
    trace = _read("jax-cpu")
    rows = {row.name: row for row in op_times.build(trace).rows()}
    assert (rows["dot.1"].type, rows["dot.1"].calls) == ("dot", 12)
    assert rows["ynn_fusion.2"].type == "fusion"


def test_the_upper_bound_of_self_time_is_wall_time_per_thread() -> None:
    trace = _read("tf-cpu-input-bound", keep_noise=True)
    stats = op_times.build(trace)
    assert (stats.self_ps <= stats.total_ps).all()
    busiest = {row.name: row for row in stats.rows()}
    assert busiest["PyFunc"].calls == 12
    assert busiest["PyFunc"].total_ps == 303_793_129_000


@pytest.mark.parametrize("size", [3, 1_000, 60_000, 98_363])
def test_a_cut_file_is_told(size: int) -> None:
    content = (DATA / "jax-cpu.xplane.pb").read_bytes()[:size]
    with pytest.raises(FormatError, match="not an XSpace, or damaged: "):
        xspace.read_bytes(content, "jax-cpu.xplane.pb")


def test_a_file_that_went_through_a_text_decoder_is_told() -> None:
    content = (DATA / "tpu-inference.xplane.pb").read_bytes().decode("utf-8", "replace").encode()
    with pytest.raises(FormatError, match="went through a UTF-8 decoder"):
        xspace.read_bytes(content, "damaged.xplane.pb")


def test_random_bytes_are_told() -> None:
    content = np.random.default_rng(1).integers(0, 256, 100_000, np.uint8).tobytes()
    with pytest.raises(FormatError, match="not an XSpace, or damaged"):
        xspace.read_bytes(content, "random")
