"""Parts of real sessions: a recorded job of TensorFlow, and op traces of PyTorch and of XLA that were imported."""

from __future__ import annotations

import io
import lzma
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from msgspec.structs import fields, replace

from stepscope.derive.stacks import session_stacks
from stepscope.diagnosis.analyze import report_of
from stepscope.fleet import about, part, sampled, schema
from stepscope.fleet import rows as rows_module
from stepscope.model.report.report import Report
from stepscope.model.session.session import JobOrigin, Session
from stepscope.sessions import bundle
from stepscope.tables.records import GpuTable, ProcessTable
from stepscope.use_cases import importing
from stepscope.wire.kinds import Flag, Kind

DATA = Path(__file__).parents[1] / "data"
RECORDED = DATA / "mirrored-replicas" / "slow.stepscope"
MOST_BYTES = 60_000

Read = tuple[Session, Report, list[dict[str, object]]]


@pytest.fixture(scope="module", name="recorded")
def _recorded() -> Read:
    session = bundle.open_session(RECORDED)
    report = report_of(session)
    return session, report, rows_of(part.of(session, report))


def rows_of(made: part.Part) -> list[dict[str, object]]:
    """The rows of a part."""
    return list(pq.read_table(io.BytesIO(made.data)).to_pylist())


def of_kind(rows: list[dict[str, object]], kind: str) -> list[dict[str, object]]:
    """The rows of one kind."""
    return [row for row in rows if row["kind"] == kind]


def total(rows: list[dict[str, object]], column: str = "time_ns") -> int:
    """The sum of a column."""
    return sum(value for row in rows if isinstance(value := row[column], int))


def test_says_what_the_report_says(recorded: Read) -> None:
    """The ledger adds up to the wall time, and findings stand with their cost and interval."""
    _, report, rows = recorded
    named = {row["name"]: row for row in of_kind(rows, "amount")}
    assert named["steps"]["number"] == report.session.steps
    assert named["wall_ns"]["number"] == report.session.wall_ns
    assert total(of_kind(rows, "ledger")) == pytest.approx(report.session.wall_ns, rel=1e-6)
    (straggler,) = of_kind(rows, "finding")
    found = next(one for one in report.findings if one.code == straggler["name"])
    assert (straggler["ratio"], straggler["low"], straggler["high"]) == (
        found.cost.ratio,
        found.cost.low,
        found.cost.high,
    )
    assert straggler["line"] == found.where[0].line
    assert straggler["time_ns"] == found.cost.ns_per_step * report.session.steps
    assert {row["name"]: row["text"] for row in of_kind(rows, "version")}["tensorflow"] == "2.21.0"


def test_stacks_add_up(recorded: Read) -> None:
    """Of each event all weights are the whole: of python the sampled time, of cpu the job's CPU time."""
    session, _, rows = recorded
    whole = {
        profile.event: round(profile.total) for profile in session_stacks.profiles(session) if profile.unit == "ns"
    }
    by_event: dict[object, int] = defaultdict(int)
    for row in of_kind(rows, "stack"):
        assert isinstance(row["time_ns"], int)
        by_event[row["name"]] += row["time_ns"]
    assert by_event["python"] == whole["python"]
    assert by_event.get("cpu", about.cpu_ns(session)) == about.cpu_ns(session)


def test_lines_have_the_cpu_time_of_the_main_thread(recorded: Read) -> None:
    """By its CPU clock, where no native stacks were taken: a line has at most what was sampled, some line all."""
    session, _, rows = recorded
    clocked = sum(
        int(records.dur_ns[(records.kind == Kind.SAMPLE) & ((records.flags & Flag.CPU) != 0)].sum())
        for records in (worker.with_gaps() for worker in session.workers)
    )
    named = {row["name"]: row["number"] for row in of_kind(rows, "amount")}
    of_lines = [value for row in of_kind(rows, "line") if isinstance(value := row["cpu_ns"], int)]
    assert named["sampled_cpu_ns"] == clocked > 0
    assert 0.9 * clocked < max(of_lines) <= clocked


def test_the_end_of_the_last_save(recorded: Read) -> None:
    """Of several the last; 0 in a job that saves nothing; not known where saves are not recorded."""
    session, report, _ = recorded
    assert about.amounts(session, report)["saved_ns"] == 0
    infos = [replace(worker, info=replace(worker.info, frameworks={"torch": "2.9"})) for worker in session.workers]
    assert about.amounts(replace(session, workers=tuple(infos)), report)["saved_ns"] is None
    (worker, *others) = session.workers
    first = worker.records.take(np.arange(2))
    saves = replace(first, kind=np.full(2, Kind.SAVE), start_ns=np.array([5, 90]), dur_ns=np.array([10, 10]))
    saving = replace(session, workers=(replace(worker, records=saves), *others))
    assert about.amounts(saving, report)["saved_ns"] == 100


def test_weights_are_scaled_to_the_run(recorded: Read) -> None:
    """Windows of native stacks stand for all CPU time: twice as much CPU time, twice the weights."""
    session, _, _ = recorded
    (python,) = [one for one in session_stacks.profiles(session) if one.event == "python"]
    doubled = sampled.rounded(python.samples.weight, 2 * python.total)
    assert int(doubled.sum()) == round(2 * python.total)
    assert abs(doubled - 2 * python.samples.weight).max() <= 1.0


@pytest.mark.parametrize(
    ("held", "devices"),
    [
        ([[0, 0], [5, 0]], 1),
        ([[5, 7], [5, 0]], 2),
        ([[0, 0], [0, 0]], 0),
        ([[-1, -1], [-1, -1]], 8),
        ([], 8),
    ],
)
def test_devices_are_those_that_the_job_held(recorded: Read, held: list[list[int]], devices: int) -> None:
    """By NVML, over all samples of two GPUs; all of the host where it does not say, or was not asked."""
    session, report, _ = recorded
    at = np.repeat(np.arange(len(held)), 2)
    columns = dict.fromkeys((one.name for one in fields(GpuTable)), np.zeros(len(at), np.int64))
    reserved = np.array(held, np.int64).reshape(-1)
    gpus = GpuTable(**{**columns, "at_ns": at, "name": np.tile([3, 4], len(held)), "job_reserved_bytes": reserved})
    host = replace(session.manifest.host, gpus=8)
    found = about.amounts(replace(session, gpus=gpus, manifest=replace(session.manifest, host=host)), report)
    assert (found["devices"], found["device_ns"]) == (devices, report.session.wall_ns * devices)


def test_cpu_time_before_the_session_is_not_the_job_s(recorded: Read) -> None:
    """Of a process that was there before: of a kernel whose cell was measured, and of one that was attached to."""
    session, _, _ = recorded
    columns = dict.fromkeys((one.name for one in fields(ProcessTable)), np.zeros(4, np.int64))
    used = {
        "pid": np.array([7, 8, 7, 8]),
        "cpu_user_ns": np.array([100, 30, 105, 32]),
        "cpu_system_ns": np.ones(4, int),
    }
    sampled = replace(session, process=ProcessTable(**{**columns, **used}))
    for mode, cpu_ns in (("run", 106 + 33), ("cell", 5 + 2), ("attach", 5 + 2)):
        assert about.cpu_ns(replace(sampled, manifest=replace(session.manifest, mode=mode))) == cpu_ns


def test_tells_no_arguments_and_no_text(recorded: Read) -> None:
    """Nor home folders, nor what a thread waited for; with sources both, its secrets masked."""
    session, report, _ = recorded
    manifest = replace(
        session.manifest,
        command=("python", "/home/ann/nets/train.py", "--data", "/secret/place", "--token", "abcd"),
        cwd="/home/ann/nets",
        origin=JobOrigin(user="ann", team="vision", project="nets", commit="c0ffee"),
    )
    changed = replace(session, manifest=manifest, sources={"/home/ann/nets/w23c2952c/w9a60f9d5.py": "x = 1\n" * 60})
    data = part.of(changed, report).data
    texts = str(pq.read_table(io.BytesIO(data)).to_pylist())
    assert "/secret/place" not in texts
    assert "/home/" not in texts
    assert "x = 1" not in texts
    with_sources = rows_of(part.of(changed, report, sources=True))
    said = {row["name"]: row["text"] for row in of_kind(with_sources, "about")}
    assert said["command"] == "python /home/ann/nets/train.py --data /secret/place --token ***"
    assert (said["user"], said["team"], said["project"], said["commit"]) == ("ann", "vision", "nets", "c0ffee")
    assert {row["text"] for row in of_kind(with_sources, "source")} == {"x = 1"}


def test_a_stack_that_is_too_long_keeps_its_leaf() -> None:
    """Whole frames go at its root; C++ templates have names of hundreds of characters."""
    stack = ";".join(f"{number}{'T' * 300}" for number in range(20))
    found = sampled.fitting(stack)
    assert len(found) <= rows_module.MOST_TEXT
    first, *frames = found.split(";")
    assert (first, frames) == (sampled.LEFT_OUT, stack.split(";")[-len(frames) :])
    assert len(frames) > 10
    assert sampled.fitting("a;b") == "a;b"


def test_every_word_is_documented(recorded: Read) -> None:
    """Kinds and names of a real part stand in the schema, whose texts make its page."""
    _, _, rows = recorded
    assert {row["kind"] for row in rows} <= schema.KIND_TEXTS.keys()
    assert {row["name"] for row in of_kind(rows, "about")} <= schema.ABOUT.keys()
    assert {row["name"] for row in of_kind(rows, "amount")} <= schema.AMOUNTS.keys()
    assert tuple(schema.KIND_TEXTS) == schema.KINDS


@pytest.fixture(name="imported", scope="module")
def _imported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Session]:
    def make(path: Path) -> Session:
        folder = tmp_path_factory.mktemp("imported")
        trace = folder / path.stem
        trace.write_bytes(lzma.decompress(path.read_bytes()))
        importing.import_files([trace], folder / "a.stepscope")
        return bundle.open_session(folder / "a.stepscope")

    return make


@pytest.mark.parametrize("name", ["torch-loader-bound.json.xz", "jax-network-input.xplane.pb.xz"])
def test_an_imported_trace(imported: Callable[[Path], Session], name: str) -> None:
    """Of PyTorch and of JAX, on a GPU: a session without processes, stacks and host has a part of what it has."""
    session = imported(DATA / "gpu-h100" / name)
    made = part.of(session, report_of(session))
    rows = rows_of(made)
    assert {row["name"]: row["text"] for row in of_kind(rows, "about")}["mode"] == "import"
    assert of_kind(rows, "line") == []
    assert total(of_kind(rows, "op"), "number") > 0
    assert made.name.is_of(made.data)


def test_size(recorded: Read) -> None:
    """A part of a real job is small."""
    session, report, _ = recorded
    assert len(part.of(session, report).data) < MOST_BYTES
