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


ASKED = {
    "steps": ("--steps", "5", "--keep-raw"),
    "no task": ("--task", "no such task", "--wait", "0"),
    "syscalls": ("--kind", "syscalls", "--seconds", "1"),
    "memory": ("--kind", "memory", "--seconds", "2"),
    "python": ("--kind", "python", "--seconds", "2"),
    "saving": ("--when", "saving", "--wait", "3", "--steps", "3"),
    "gave way": ("--steps", "1000"),
    "refused": ("--steps", "3"),
}
"""What one fit is asked in turn; from "gave way" on it starts a profiler when it sees one."""
SAID = "said.json"


def asked_in_turn(project: Project) -> None:
    """An unmodified Keras fit that is asked for captures of all kinds; what was said lies in ``SAID``."""
    logs = project.root / "logs"
    job = Running(project, "long_fit.py", str(logs))
    said: dict[str, object] = {"pid": job.pid, "listened before": sorted(job.listening())}
    for what, options in ASKED.items():
        if what == "gave way":
            logs.mkdir()
        done = job.trace(*options)
        said[what] = [done.returncode, done.stdout, done.stderr]
        if what == "steps":
            said["listened after"] = sorted(job.listening())
    said["end"] = job.end()
    (project.root / SAID).write_text(json.dumps(said))


class Fit:
    """The recorded fit: what was said, and its session."""

    def __init__(self, project: Project) -> None:
        self.root = project.root
        self.said = json.loads((project.root / SAID).read_text())
        (self.path,) = project.sessions()
        self.session = project.session()
        self.report = json.loads((self.path / "report.json").read_text())

    def answer(self, what: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of one command."""
        code, out, errors = self.said[what]
        return code, out, errors

    def captures(self, kind: str = "ops") -> list[CaptureInfo]:
        """The captures of a kind that the user asked for."""
        return [one for one in captures_of(self.session) if one.asked_by == "user" and one.kind == kind]


@pytest.fixture(name="fit", scope="module")
def _fit(ran_once: Callable[[Callable[[Project], None]], Project]) -> Fit:
    return Fit(ran_once(asked_in_turn))


def test_a_fit_that_was_asked_ends_as_ever(fit: Fit) -> None:
    """Whatever was captured of it."""
    code, out, errors = fit.answer("end")
    assert (code, out) == (0, "done\n"), errors


def test_steps_of_a_running_fit(fit: Fit) -> None:
    """An unmodified Keras fit: every step that was asked for is in the trace, nothing listens, the job is as it was."""
    code, out, errors = fit.answer("steps")
    assert code == 0, errors
    assert "5 steps of Keras fit" in out
    assert fit.said["listened after"] == fit.said["listened before"] == []
    code, _, errors = fit.answer("no task")
    assert code == 74
    assert "no task is called no such task; expected one of: " in errors
    capture = captures_of(fit.session)[0]
    assert (capture.outcome, capture.way, capture.asked_by, capture.steps) == ("done", "profiler", "user", 5)
    assert capture.ratio is not None
    assert capture.neighbours >= 5
    assert capture.cost_ns > 0
    assert "captures" in (fit.path / "report.txt").read_text()
    raw = next((fit.path / "captures").glob("ops-001*.xplane.pb"))
    assert raw.stat().st_size == capture.bytes
    assert not list((fit.path / "captures").glob("raw-*"))
    assert capture.files == ("optraces/ops-001", raw.name)
    trace = optrace.load(fit.path, "ops-001")
    marks = trace.events_of(trace.metas_named(STEP_MARKER))
    assert len(marks) == 5
    assert set(trace.categories()[marks].tolist()) == {Category.STEP}
    assert trace.events.start_ns[marks].min() >= capture.at_ns
    assert trace.events.end_ns[marks].max() <= capture.at_ns + capture.recorded_ns
    assert fit.report["overhead"]["captures"][0]["steps"] == 5
    assert 0 < fit.report["overhead"]["captures_ratio"] < 1


def test_system_calls_of_a_running_fit(fit: Fit) -> None:
    """Counted in the kernel, by thread; the report says how many a step makes."""
    code, out, errors = fit.answer("syscalls")
    if "cannot be counted" in errors:
        pytest.skip(errors)
    assert code == 0, errors
    assert " system calls in " in out
    (capture,) = fit.captures("syscalls")
    assert (capture.way, capture.outcome) == ("bpf", "done")
    assert capture.files == ("calls/0001.json",)
    calls = fit.report["system_calls"]
    assert calls["steps"] > 0
    assert calls["wall_ns"] >= 1_000_000_000
    pid = fit.said["pid"]
    assert {(row["pid"], row["native"]) for row in calls["rows"] if row["of_steps"]} == {(pid, pid)}
    assert any(row["call"] == "futex" for row in calls["rows"])
    assert calls["count"] >= sum(row["count"] for row in calls["rows"]) > 0


def test_memory_of_a_running_fit(fit: Fit) -> None:
    """Growth and the highest moment are flame graphs of bytes; the process says what its variables hold."""
    code, out, errors = fit.answer("memory")
    if "perf is not installed" in errors or "perf_event_paranoid" in errors:
        pytest.skip(errors)
    assert code == 0, errors
    dense, _, dense_errors = fit.answer("python")
    assert dense == 0, dense_errors
    assert " came and stayed" in out
    assert "; highest " in out
    (memory,), (python,) = fit.captures("memory"), fit.captures("python")
    assert (memory.way, memory.outcome) == ("perf", "done")
    assert memory.files == ("stacks/memory-growth-0001.parquet", "stacks/memory-peak-0001.parquet")
    assert (python.way, python.outcome, python.files) == ("agent", "done", ())
    profiles = {profile.event: profile for profile in session_stacks.profiles(fit.session)}
    assert profiles["memory-peak"].unit == "bytes"
    assert profiles["memory-peak"].total > 100 << 20
    assert 0 < profiles["python-capture"].total < profiles["python"].total
    looks = [look for worker in fit.session.workers for look in worker.all(MemoryHeld) if look.reason == "asked"]
    assert len(looks) == 2


def test_a_capture_under_a_condition_that_never_holds_is_not_kept(fit: Fit) -> None:
    """A fit that saves nothing: its tries are discarded and counted, and the exit code is that of nothing caught."""
    code, _, errors = fit.answer("saving")
    assert code == 75, errors
    assert "not caught in 3 s: that a checkpoint or summary is written was not seen at all meanwhile" in errors
    captures = [capture for capture in fit.captures() if capture.when]
    assert captures
    assert {(capture.outcome, capture.when, capture.files) for capture in captures} == {("discarded", "saving", ())}


def test_a_user_s_profiler_wins(fit: Fit) -> None:
    """Ours is gone before the user's starts, and is refused while that runs; the user's trace is written as ever."""
    code, _, errors = fit.answer("gave way")
    assert code == 74
    assert "the user's own profiler has started" in errors
    code, _, errors = fit.answer("refused")
    assert code == 74
    assert "the user's own profiler runs" in errors
    assert list((fit.root / "logs").rglob("*.xplane.pb"))
    assert [c.outcome for c in captures_of(fit.session)[-2:]] == ["gave-way", "refused"]
    assert [e.action for w in fit.session.workers for e in w.all(UserProfiler)] == ["start", "stop", "stopped"]


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
