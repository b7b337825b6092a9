"""A session's timeline as a Perfetto trace: each span of the timeline once, where and when it was."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.derive.op_traces import Maker
from tests.derive.sessions import MS, Job, S
from tests.exporters.perfetto_files import Parsed, parse
from tests.sessions.member_sessions import change, sessions
from tests.web.timeline_sessions import STEP, stored

from stepscope import store
from stepscope.derive.view import SessionView
from stepscope.exporters import perfetto
from stepscope.exporters.perfetto import TraceContents
from stepscope.exporters.ranges import Range
from stepscope.model.session.session import Manifest, Session, StoredOpTrace
from stepscope.sessions import merge
from stepscope.store.manifests import read_manifest
from stepscope.timeline.tracks import Spans
from stepscope.use_cases.importing import import_files

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def written(view: SessionView, within: Range | None = None) -> tuple[Parsed, TraceContents]:
    stream = io.BytesIO()
    made = perfetto.write(view, stream, within)
    return parse(stream.getvalue()), made


def drawn(view: SessionView) -> Counter[tuple[str, int, int]]:
    """Name, start and duration of every span of the timeline."""
    spans = Spans(view, lambda _ratio, _doing: None)
    found: Counter[tuple[str, int, int]] = Counter()
    for track in (*spans.of_processes(), *spans.of_traces()):
        rows = zip(track.name.tolist(), track.start.tolist(), track.dur.tolist(), strict=True)
        found.update((spans.names.items[name].text, start, dur) for name, start, dur in rows)
    return found


def read_spans(read: Parsed) -> Counter[tuple[str, int, int]]:
    return Counter((one.name, one.start, one.dur) for track in read.slices.values() for one in track)


@pytest.fixture(scope="module", name="view")
def _view(tmp_path_factory: pytest.TempPathFactory) -> SessionView:
    return SessionView(store.open_session(stored(tmp_path_factory.mktemp("traced"), traced=True)))


def test_every_span_of_the_timeline_is_in_the_trace(view: SessionView) -> None:
    """Threads lie in their process, an op trace's lines in the process that was traced, counters with the machine."""
    read, made = written(view)
    assert read_spans(read) == drawn(view)
    assert made.spans == sum(drawn(view).values())
    pid = view.session.workers[0].info.pid
    titles = read.by_title()
    process = next(title for title in titles if title.endswith(" > Steps")).partition(" > ")[0]
    about = next(one for one in read.tracks.values() if one.HasField("process"))
    assert (about.process.pid, about.process.process_name) == (pid, process)
    assert {title.rpartition(" > ")[2].partition(" (")[0] for title in titles} >= {
        "Steps",
        "Parts of the step",
        "python",
    }
    assert any(title.startswith(f"{process} > ops-001 ") for title in titles)
    assert {one.counter.unit_name for one in read.tracks.values() if one.HasField("counter")} >= {"bytes/s", "cores"}
    assert all(read.values[track] for track, one in read.tracks.items() if one.HasField("counter"))
    callback = next(s for track in read.slices.values() for s in track if s.name.startswith("Plot"))
    assert callback.category == "callbacks"
    assert callback.args["source"].endswith(":30")


def test_of_a_range_whole_spans_are_written(view: SessionView) -> None:
    """Those that lie in it at least partly."""
    begin, end = STEP + 5 * MS, 3 * STEP
    read, _ = written(view, (begin, end))
    inside = {
        one: count
        for one, count in drawn(view).items()
        if one[1] < end and (one[1] + one[2] > begin or begin <= one[1] == one[1] + one[2])
    }
    assert inside
    assert read_spans(read) == Counter(inside)


def test_ops_have_their_arguments_and_flows() -> None:
    """What the profiler wrote at an event, and the launch of a kernel as a flow from the host to the device."""
    maker = Maker()
    device = maker.stream(maker.device())
    maker.launch(maker.main, device, "gemm", 100, 260, 40)
    maker.span(maker.main, "MatMul", 400, 10, shape="[2,3]", ratio=0.5, bytes=-3)
    trace = maker.trace()
    stored_trace = StoredOpTrace(name="t", worker="", source=trace.source, load=lambda: trace)
    view = SessionView(Session(manifest=Manifest(), op_traces=[stored_trace]))
    read, made = written(view)
    slices = {one.name: one for track in read.slices.values() for one in track}
    launch, kernel, op = slices["cudaLaunchKernel"], slices["gemm"], slices["MatMul"]
    assert made.flows == 1
    assert launch.begins == kernel.ends != []
    assert (op.args["shape"], op.args["ratio"], op.args["bytes"]) == ("[2,3]", 0.5, -3)


def test_spans_that_overlap_stand_on_tracks_of_one_name() -> None:
    """Begins and ends of one track must nest; what does not is divided, and merged again by a common key."""
    job = Job()
    work = job.function()
    for at in range(20):
        work.at(at * 10 * MS, 25 * MS)
    view = job.view()
    read, _ = written(view)
    assert read_spans(read) == drawn(view)
    lanes = [read.tracks[track] for track, found in read.slices.items() if any(s.dur == 25 * MS for s in found)]
    keys = Counter((one.name, one.sibling_merge_key_int) for one in lanes)
    assert max(keys.values()) == 3


def test_what_begins_before_the_session_is_cut_there() -> None:
    """Times of the format cannot be negative."""
    job = Job()
    job.function().at(-5 * MS, 8 * MS)
    job.function().at(10 * MS, 8 * MS)
    read, made = written(job.view())
    times = sorted((one.start, one.dur) for track in read.slices.values() for one in track if one.dur <= 8 * MS)
    assert (0, 3 * MS) in times
    assert any("before the session's start" in what for what in made.left_out)


def test_a_member_that_began_earlier_lies_before_the_first(tmp_path: Path) -> None:
    """All times are moved, the wall clock's as well, since none can be negative; groups name their members."""
    parts = sessions(tmp_path, [[1.0], [31.0]])
    origin = read_manifest(parts[1]).origin_monotonic_ns
    change(parts[1], origin_monotonic_ns=origin - 3 * S)
    view = SessionView(store.open_session(merge.merge(parts, tmp_path / "job.stepscope")))
    read, made = written(view)
    begins = {title: min(one.start for one in found) for title, found in read.by_title().items() if found}
    steps = {title.partition(":")[0]: begin for title, begin in begins.items() if title.endswith("> Steps")}
    own = [one.steps for one in map(SessionView, map(store.open_session, parts))]
    assert read.clocks[6] == 3 * S
    assert steps == {
        f"worker {number}": int(one.starts[0]) + (3 * S if number == 0 else 0)
        for number, one in enumerate(own)
        if one is not None
    }
    assert made.left_out == []


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data does not lie next to this checkout")
def test_a_real_trace_of_a_gpu(tmp_path: Path) -> None:
    """Every event, with launches as flows whose two ends are there."""
    path = import_files([DATA / "xplane" / "gpu-multi-worker.xplane.pb"], tmp_path / "gpu.stepscope").session
    view = SessionView(store.open_session(path))
    read, made = written(view)
    assert read_spans(read) == drawn(view)
    begins = [flow for track in read.slices.values() for one in track for flow in one.begins]
    ends = [flow for track in read.slices.values() for one in track for flow in one.ends]
    assert made.flows == len(begins) > 1000
    assert np.array_equal(np.sort(begins), np.sort(ends))
