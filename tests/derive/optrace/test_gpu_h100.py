"""What is derived of traces of a real GPU agrees with the clock, with CUDA's events and with what the programs do."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path

import pytest

from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.optrace import compiled_ops, line_times
from stepscope.derive.optrace.device import device_work
from stepscope.derive.optrace.steps import readbacks, step_parts
from stepscope.derive.optrace.trace_view import OpView
from stepscope.derive.view import SessionView
from stepscope.detectors import registry
from stepscope.detectors.base import run
from stepscope.model.session.session import Manifest, Session, StoredOpTrace, Worker, WorkerInfo
from stepscope.readers.chrome import trace_events
from stepscope.readers.xplane import xspace
from stepscope.tables.findings import Finding
from stepscope.tables.optrace import DEVICE_KINDS, Category, LineKind, OpTrace, PlaneKind
from stepscope.tables.records import RecordTable
from stepscope.timeline.tracks import Spans

DATA = Path(__file__).resolve().parents[2] / "data" / "gpu-h100"
MS = 1e6
FIRST = {
    "jax-bytes-to-device": "KRN002",
    "jax-network-input": "INP007",
    "jax-small-batch": "KRN001",
    "jax-convolution": "GRF022",
    "torch-clean-bf16": None,
    "torch-reads-values": "KRN001",
    "torch-pageable-frames": "KRN002",
    "torch-loader-bound": "INP007",
}


@cache
def _trace(name: str) -> OpTrace:
    kind = "json" if name.startswith("torch") else "xplane.pb"
    content = lzma.decompress((DATA / f"{name}.{kind}.xz").read_bytes())
    read = trace_events.read_bytes if kind == "json" else xspace.read_bytes
    return read(content, name)


@cache
def _view(name: str) -> OpView:
    return OpView(_trace(name))


def _session(name: str) -> SessionView:
    trace = _trace(name)
    stored = StoredOpTrace(name="a", worker="", source=trace.source, load=lambda: trace)
    return SessionView(Session(manifest=Manifest(), op_traces=[stored]))


@cache
def _findings(name: str) -> tuple[Finding, ...]:
    findings, _, failures = run(registry.ALL, _session(name))
    assert failures == ()
    return tuple(findings)


@pytest.mark.parametrize("name", FIRST)
def test_the_first_finding_is_what_the_program_was_written_to_do(name: str) -> None:
    """The clean program has none."""
    found = [finding.code for finding in _findings(name)]
    assert found[:1] == [FIRST[name]] * (FIRST[name] is not None)


@pytest.mark.parametrize("name", FIRST)
def test_the_trace_has_the_one_device_that_there_is(name: str) -> None:
    """Kineto lists devices that do not exist; its own overhead is no process of the job."""
    trace = _trace(name)
    (device,) = (plane for plane in trace.planes if plane.kind in DEVICE_KINDS)
    assert (device.name, device.stats["compute_cap_major"], device.stats["core_count"]) == ("/device:GPU:0", 9, 132)
    assert all(line.name for line in trace.lines_of(LineKind.STREAM))
    hosts = [plane.name for plane in trace.planes if plane.kind is PlaneKind.HOST]
    assert "process -1" not in hosts


@pytest.mark.parametrize("name", FIRST)
def test_parts_add_up_to_the_steps(name: str) -> None:
    view = _view(name)
    assert view.breakdown.per_step.sum(axis=1) == pytest.approx(view.periods.dur_ns, rel=1e-9)


def test_steps_that_are_only_queued_last_as_long_as_their_work_on_the_device() -> None:
    """The host is done with the first step after 22 ms; CUDA's events say 96.0 ms for each."""
    view = _view("torch-clean-bf16")
    assert view.periods.by_device
    assert view.periods.mean_ns == pytest.approx(96.0 * MS, rel=0.01)
    assert view.idle is not None
    assert view.idle.ratio < 0.02


def test_steps_that_read_their_results_are_those_of_the_host() -> None:
    for name in ("torch-reads-values", "torch-pageable-frames", "jax-bytes-to-device"):
        assert not _view(name).periods.by_device


def test_values_that_are_read_one_by_one_are_counted() -> None:
    """The norms of 96 gradients, and the loss."""
    view = _view("torch-reads-values")
    assert readbacks.build(view.trace, view.device, view.periods).per_step == 97
    assert _findings("torch-reads-values")[0].remedies[0].id == "read-values-together"


def test_the_bytes_of_the_copies_are_those_of_the_batches() -> None:
    """A copy of a step outside the periods is not counted."""
    sent = {
        name: next(e.value for e in _findings(name)[0].evidence if e.metric == "bytes_per_step")
        for name in ("torch-pageable-frames", "jax-bytes-to-device")
    }
    assert sent["torch-pageable-frames"] == pytest.approx(256 * 3 * 256 * 256 * 4, rel=1e-6)
    assert sent["jax-bytes-to-device"] == pytest.approx(64 * 256 * 256 * (30 + 1), rel=1e-6)


def test_a_copy_of_jax_takes_what_the_clock_says_most_of_it_on_the_host() -> None:
    """29.9 ms, of which the bus is in use for a tenth: the rest fills the buffer that the device reads."""
    split = _view("jax-bytes-to-device").breakdown
    both = sum(split.mean_ns(part) for part in step_parts.TO_DEVICE)
    assert both == pytest.approx(29.9 * MS, rel=0.1)
    assert split.mean_ns("copy-to-device") < 0.15 * both


def test_waiting_for_the_network_is_told_from_preparing_the_batch() -> None:
    (found,) = (finding for finding in _findings("jax-network-input") if finding.code == "INP007")
    assert (found.pipeline_stage, found.where[0].file, found.where[0].function) == (
        "raw-input",
        "network_input.py",
        "received",
    )


def test_kernels_of_32_bits_without_tensor_cores_are_known_from_those_with() -> None:
    """``sm80_xmma_gemm_f32f32_..._ffma`` computes without them, ``nvjet_sm90_tst`` and ``..._tf32f32_`` with them."""
    plain, mixed, tf32 = (_view(f).kernels for f in ("torch-reads-values", "torch-clean-bf16", "jax-bytes-to-device"))
    assert plain is not None
    assert mixed is not None
    assert tf32 is not None
    assert not plain.tensor_core.any()
    assert plain.ratio(plain.eligible) > 0.25
    assert mixed.ratio(mixed.tensor_core & mixed.sixteen_bit) > 0.6
    assert tf32.ratio(tf32.tensor_core & ~tf32.sixteen_bit) > 0.3


def test_kernels_of_jax_have_names_of_their_own() -> None:
    """Each names the whole program as its op."""
    view = _view("jax-bytes-to-device")
    rows = device_work.rows(view.trace, view.device, Category.KERNEL)
    assert len({view.labels.of(int(row)) for row in rows}) > 20
    assert not any(row.name == "XlaModule" for row in view.stats.rows())


def test_the_timeline_has_the_threads_and_streams_and_nothing_of_the_profiler() -> None:
    tracks = list(Spans(_session("torch-reads-values"), lambda *_: None).of_traces())
    assert [(track.group, track.title.strip()) for track in tracks] == [
        ("a python3", "thread 4566 (python3)"),
        ("a python3", "thread 4592 (python3)"),
        ("a /device:GPU:0", "stream 7"),
        ("a /device:GPU:0", "stream 7  annotations"),
    ]


def test_kernels_have_the_sizes_and_the_line_of_their_op() -> None:
    """A kernel names an op of its program: the convolution of 11 x 11, its two gradients, and what they compute."""
    compiled = compiled_ops.build(_trace("jax-convolution"))
    ran = {compiled.ops[number].op.name: compiled.ops[number] for number in compiled.index.tolist()}
    large = [one for one in ran.values() if one.op.convolution and one.op.convolution.kernel == (11, 11)]
    assert {one.op.opcode for one in large} == {
        "__cudnn$convForward",
        "__cudnn$convBackwardInput",
        "__cudnn$convBackwardFilter",
    }
    for one in large:
        assert one.op.convolution is not None
        assert (one.op.convolution.taken, one.op.convolution.made, one.op.convolution.plain) == (256, 256, True)
        assert one.op.flops == 2 * 64 * 64 * 64 * 256 * 256 * 11 * 11  # batch, rows, columns, channels, kernel
        assert one.place is not None
        assert (one.place.function, one.place.line) == ("scores", 99)  # not the line that all convolutions share
    shapes = {one.op.shape for one in large}
    assert shapes == {"f32[64,64,64,256]", "f32[256,11,11,256]"}
    peak = 989e12 / 2  # TF32 of the card, without sparsity
    table = line_times.build(_trace("jax-convolution"), _no_graph())
    mine = [op for op in table.ops if op.flops == large[0].op.flops]
    assert len(mine) == len(large)
    (forward,) = (op for op in mine if op.type == "cudnn-conv")  # the gradients' algorithms need fewer multiplications
    assert 0.1 * peak < 10 * forward.flops / (forward.self_ps / 1e12) < peak  # ten steps


def test_a_large_kernel_is_told_with_its_line_and_cost() -> None:
    """The finding says the size, the line, and at most what the clock says of the network without the large kernel."""
    (found,) = (one for one in _findings("jax-convolution") if one.code == "GRF022")
    assert "11 x 11" in found.title
    assert [(place.line, place.function) for place in found.where] == [(99, "scores")]
    extra = 1 - 1 / 1.76  # one 3 x 3 in its place, by the clock; the stack of five is slower than one
    assert found.cost.low < found.cost.ratio < extra < found.cost.high


@pytest.mark.parametrize("name", ["jax-small-batch", "jax-bytes-to-device", "jax-network-input"])
def test_small_kernels_are_clear(name: str) -> None:
    """The same network with 3 x 3, and 5 x 5 from three channels, has no large kernel: the detector looked."""
    _, checked, _ = run(registry.ALL, _session(name))
    assert [one.outcome for one in checked if one.detector == "GRF022"] == ["clear"]


def _no_graph() -> GraphIndex:
    return GraphIndex(Worker(info=WorkerInfo(key="", pid=0), records=RecordTable.empty()))
