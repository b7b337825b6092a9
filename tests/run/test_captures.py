"""Captures of running jobs, asked for as a user asks for them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.run.conftest import Project, environment, job_of

from stepscope.derive.stacks import session_stacks
from stepscope.model.log.events import CaptureTaken, Name, UserProfiler
from stepscope.model.log.memory import MemoryHeld
from stepscope.model.session.session import CaptureInfo, Session
from stepscope.store import optrace
from stepscope.tables.optrace import Category
from stepscope.wire.kinds import STEP_MARKER, Kind

pytestmark = [pytest.mark.tf, pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAMS = Path(__file__).parent / "programs"


class Running:
    """A job under ``stepscope run`` that goes on until it is told."""

    def __init__(self, project: Project, program: str, *words: str) -> None:
        self.project = project
        self.told = project.root / "told"
        self.launcher = project.start("run", "--budget", "0%", str(PROGRAMS / program), str(self.told), *words)
        self.pid = job_of(self.launcher.pid)

    def trace(self, *options: str) -> subprocess.CompletedProcess[str]:
        """``stepscope trace`` of it."""
        return self.project.run("trace", str(self.pid), "--force", "--timeout", "50", *options)

    def end(self) -> tuple[int, str, str]:
        """Let it end: exit code, standard output after the first line, standard error."""
        self.told.touch()
        out, errors = self.launcher.communicate(timeout=120)
        return self.launcher.returncode, out, errors

    def listening(self) -> set[str]:
        """Inodes of the TCP sockets of its network namespace on which somebody listens, and which are the job's."""
        mine = set()
        for fd in Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                mine.add(str(fd.readlink()))
            except OSError:
                continue
        found = set()
        for name in ("tcp", "tcp6"):
            for line in Path(f"/proc/{self.pid}/net/{name}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and f"socket:[{fields[9]}]" in mine:
                    found.add(fields[1])
        return found


@pytest.fixture
def running(project: Project) -> Iterator[Callable[..., Running]]:
    """Starts jobs, and ends those that a failed test leaves."""
    started: list[Running] = []

    def start(program: str, *words: str) -> Running:
        started.append(Running(project, program, *words))
        return started[-1]

    yield start
    for job in started:
        if job.launcher.poll() is None:
            job.end()


def captures_of(session: Session) -> tuple[CaptureInfo, ...]:
    """The captures that a session holds, each with its files."""
    return session.manifest.captures


def test_steps_of_a_running_fit(project: Project, running: Callable[..., Running]) -> None:
    """An unmodified Keras fit: every step that was asked for is in the trace, nothing listens, the job is as it was."""
    job = running("long_fit.py")
    before = job.listening()
    done = job.trace("--steps", "5", "--keep-raw")
    assert done.returncode == 0, done.stderr
    assert "5 steps of Keras fit" in done.stdout
    assert job.listening() == before == set()
    refused = job.trace("--task", "no such task", "--wait", "0")
    assert refused.returncode == 74
    assert "no task is called no such task; expected one of: " in refused.stderr
    code, out, errors = job.end()
    assert (code, out) == (0, "done\n"), errors
    session = project.session()
    (capture,) = captures_of(session)
    assert (capture.outcome, capture.way, capture.asked_by, capture.steps) == ("done", "profiler", "user", 5)
    assert capture.ratio is not None
    assert capture.neighbours >= 5
    assert capture.cost_ns > 0
    (path,) = project.sessions()
    assert "captures" in (path / "report.txt").read_text()
    raw = next((path / "captures").glob("ops-001*.xplane.pb"))
    assert raw.stat().st_size == capture.bytes
    assert not list((path / "captures").glob("raw-*"))
    assert capture.files == ("optraces/ops-001", raw.name)
    trace = optrace.load(path, "ops-001")
    marks = trace.events_of(trace.metas_named(STEP_MARKER))
    assert len(marks) == 5
    assert set(trace.categories()[marks].tolist()) == {Category.STEP}
    assert trace.events.start_ns[marks].min() >= capture.at_ns
    assert trace.events.end_ns[marks].max() <= capture.at_ns + capture.recorded_ns
    report = json.loads((path / "report.json").read_text())
    (told,) = report["overhead"]["captures"]
    assert told["steps"] == 5
    assert 0 < report["overhead"]["captures_ratio"] < 1


def test_system_calls_of_a_running_fit(project: Project, running: Callable[..., Running]) -> None:
    """Counted in the kernel, by thread; the report says how many a step makes."""
    job = running("long_fit.py")
    done = job.trace("--kind", "syscalls", "--seconds", "1")
    code, out, _ = job.end()
    assert (code, out) == (0, "done\n")
    if "cannot be counted" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert " system calls in " in done.stdout
    (capture,) = captures_of(project.session())
    assert (capture.kind, capture.way, capture.outcome) == ("syscalls", "bpf", "done")
    assert capture.files == ("calls/0001.json",)
    (path,) = project.sessions()
    calls = json.loads((path / "report.json").read_text())["system_calls"]
    assert calls["steps"] > 0
    assert calls["wall_ns"] >= 1_000_000_000
    assert {(row["pid"], row["native"]) for row in calls["rows"] if row["of_steps"]} == {(job.pid, job.pid)}
    assert any(row["call"] == "futex" for row in calls["rows"])
    assert calls["count"] >= sum(row["count"] for row in calls["rows"]) > 0


def test_memory_of_a_running_fit(project: Project, running: Callable[..., Running]) -> None:
    """Growth and the highest moment are flame graphs of bytes; the process says what its variables hold."""
    job = running("long_fit.py")
    done = job.trace("--kind", "memory", "--seconds", "2", "--force")
    dense = job.trace("--kind", "python", "--seconds", "2", "--force")
    code, out, _ = job.end()
    assert (code, out) == (0, "done\n")
    if "perf is not installed" in done.stderr or "perf_event_paranoid" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert dense.returncode == 0, dense.stderr
    assert " came and stayed" in done.stdout
    assert "; highest " in done.stdout
    session = project.session()
    memory, python = (one for one in captures_of(session) if one.asked_by == "user")
    assert (memory.kind, memory.way, memory.outcome) == ("memory", "perf", "done")
    assert memory.files == ("stacks/memory-growth-0001.parquet", "stacks/memory-peak-0001.parquet")
    assert (python.kind, python.way, python.outcome, python.files) == ("python", "agent", "done", ())
    profiles = {profile.event: profile for profile in session_stacks.profiles(session)}
    assert profiles["memory-peak"].unit == "bytes"
    assert profiles["memory-peak"].total > 100 << 20
    assert 0 < profiles["python-capture"].total < profiles["python"].total
    looks = [look for worker in session.workers for look in worker.all(MemoryHeld) if look.reason == "asked"]
    assert len(looks) == 2


def test_a_capture_under_a_condition_that_never_holds_is_not_kept(
    project: Project, running: Callable[..., Running]
) -> None:
    """A fit that saves nothing: its tries are discarded and counted, and the exit code is that of nothing caught."""
    job = running("long_fit.py")
    missed = job.trace("--when", "saving", "--wait", "8", "--steps", "3")
    assert missed.returncode == 75, missed.stderr
    assert "not caught in 8 s: that a checkpoint or summary is written was not seen at all meanwhile" in missed.stderr
    assert job.end()[:2] == (0, "done\n")
    captures = [capture for capture in captures_of(project.session()) if capture.asked_by == "user"]
    assert captures
    assert {(capture.outcome, capture.when, capture.files) for capture in captures} == {("discarded", "saving", ())}


@pytest.mark.parametrize(
    ("how", "title", "evaluates"), [("fit", "Keras fit", "test_function"), ("loop", "train_step", "eval_step")]
)
def test_a_capture_of_steps_holds_no_evaluation(
    project: Project, running: Callable[..., Running], how: str, title: str, evaluates: str
) -> None:
    """A job that evaluates for longer than it trains: marked steps are training steps, however often it is asked."""
    job = running("long_evaluation.py", how)
    for _ in range(3):
        done = job.trace("--steps", "6")
        assert done.returncode == 0, done.stderr
        assert title in done.stdout
    code, out, errors = job.end()
    assert (code, out) == (0, "done\n"), errors
    session = project.session()
    (path,) = project.sessions()
    worker = next(worker for worker in session.workers if worker.info.frameworks)
    names = [name.id for name in worker.all(Name) if evaluates in (name.text, f"{name.role}_function")]
    records = worker.records
    assert np.isin(records.name[np.isin(records.kind, (Kind.EXECUTION, Kind.FUNCTION))], names).any()
    evaluated = records.start_ns[np.isin(records.name, names) & np.isin(records.kind, (Kind.EXECUTION, Kind.FUNCTION))]
    for capture in captures_of(session):
        assert (capture.outcome, capture.work) == ("done", "training")
        assert 1 <= capture.steps <= 6
        trace = optrace.load(path, capture.files[0].rpartition("/")[2])
        marks = trace.events_of(trace.metas_named(STEP_MARKER))
        assert len(marks) == capture.steps
        for start, end in zip(trace.events.start_ns[marks], trace.events.end_ns[marks], strict=True):
            assert not ((evaluated >= start) & (evaluated < end)).any()
    report = json.loads((path / "report.json").read_text())
    assert all(told["joined"] and told["events"] > 0 for told in report["overhead"]["captures"])
    assert (
        f"training step{'s' if report['overhead']['captures'][0]['steps'] > 1 else ''} of "
        in (path / "report.txt").read_text()
    )


def test_who_asks_while_a_job_starts_gets_its_steps(
    project: Project, running: Callable[..., Running], tmp_path: Path
) -> None:
    """Before TensorFlow is imported there is nothing to trace: what is waited for is said, and steps are captured."""
    go = tmp_path / "go"
    job = running("late_fit.py", str(go))
    command = project.command("trace", str(job.pid), "--steps", "5", "--wait", "200", "--timeout", "250")
    asking = subprocess.Popen(
        command, cwd=project.root, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert asking.stderr is not None
    said = asking.stderr.readline()
    while "sidecar" in said:
        said = asking.stderr.readline()
    go.touch()
    out, errors = asking.communicate(timeout=280)
    assert asking.returncode == 0, said + errors
    assert said == "stepscope: waiting up to 200 s for steps: no process of the job has imported TensorFlow yet\n"
    assert "5 steps of Keras fit" in out
    assert job.end()[:2] == (0, "done\n")


def test_one_run_of_a_task(project: Project, running: Callable[..., Running]) -> None:
    """A MonitoredTrainingSession: exactly the next run of the task that was asked for, and hooks see nothing of it."""
    job = running("long_session.py")
    done = job.trace("--task", "accuracy", "--keep-raw")
    assert done.returncode == 0, done.stderr
    assert "1 step of Session.run accuracy" in done.stdout
    code, out, _ = job.end()
    assert (code, out) == (0, "done\n")
    session = project.session()
    (capture,) = captures_of(session)
    assert (capture.outcome, capture.way, capture.steps) == ("done", "run-metadata", 1)
    (path,) = project.sessions()
    (raw,) = (path / "captures").glob("ops-001*.runmetadata.pb")
    data = raw.read_bytes()
    assert b"weights" in data or b"accuracy" in data
    assert b"GradientDescent" not in data
    (answer,) = [event for worker in session.workers for event in worker.all(CaptureTaken)]
    assert answer.files == ["run-0001.runmetadata.pb"]
    assert capture.files == ("optraces/ops-001", raw.name)
    trace = optrace.load(path, "ops-001")
    assert trace.events.start_ns.min() >= capture.at_ns
    assert trace.events.end_ns.max() <= capture.at_ns + capture.recorded_ns


def test_a_user_s_profiler_wins(project: Project, running: Callable[..., Running], tmp_path: Path) -> None:
    """Ours is gone before the user's starts, and is refused while that runs; the user's trace is written as ever."""
    logs = tmp_path / "logs"
    job = running("long_fit.py", str(logs))
    gave_way = job.trace("--steps", "1000")
    assert gave_way.returncode == 74
    assert "the user's own profiler has started" in gave_way.stderr
    refused = job.trace("--steps", "3")
    assert refused.returncode == 74
    assert "the user's own profiler runs" in refused.stderr
    code, out, errors = job.end()
    assert (code, out) == (0, "done\n"), errors
    assert list(logs.rglob("*.xplane.pb"))
    session = project.session()
    assert [c.outcome for c in captures_of(session)] == ["gave-way", "refused"]
    assert [e.action for w in session.workers for e in w.all(UserProfiler)] == ["start", "stop", "stopped"]
