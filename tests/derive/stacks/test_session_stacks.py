"""The stacks of a session: what the agent sampled, what was captured, within which steps."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, POOL, SCRIPT, Frame, Job
from tests.derive.stack_profiles import lines_of, of_text
from tests.detectors.wait_jobs import look, looked

from stepscope.derive.stacks import session_stacks
from stepscope.model.session.session import Session
from stepscope.tables.nearby import NotebookCell
from stepscope.tables.stacks import StackFlag
from stepscope.wire.kinds import Flag

MAIN = Frame(SCRIPT, "main", 43)
STEP = Frame(SCRIPT, "step", 9)
OURS = Frame("/run/agent/probes/keras.py", "_wrap", 5, own=False)


def job() -> Job:
    made = Job(ended_ns=2_000 * MS)
    made.samples([100 * MS, 200 * MS], MAIN, OURS, STEP)
    made.samples([150 * MS], STEP, thread=POOL, dur=30 * MS)
    return made


def session_of(made: Job) -> Session:
    return made.session()


def test_samples_weigh_the_time_that_they_stand_for() -> None:
    """Threads apart, frames root to leaf, times kept."""
    (profile,) = session_stacks.profiles(session_of(job()))
    assert (profile.event, profile.unit, profile.total) == ("python", "ns", 130 * MS)
    assert sorted(profile.samples.at_ns.tolist()) == [100 * MS, 150 * MS, 200 * MS]
    assert profile.threads[0].name == "MainThread"
    assert [f.function for f in profile.frames_of(int(profile.samples.stack[0]))] == ["main", "_wrap", "step"]
    assert {f.line for f in profile.frames} == {43, 9, 5}


def test_our_own_frames_are_left_out() -> None:
    """Wrappers of the agent are no code of the job's."""
    session = session_of(job())
    session = replace(session, manifest=msgspec.structs.replace(session.manifest, run_dir="/run/agent"))
    (profile,) = session_stacks.profiles(session)
    assert all(f.function != "_wrap" for f in profile.frames)
    assert profile.total == 130 * MS


@pytest.mark.parametrize(
    "agent",
    [
        "/usr/lib/python3/site-packages/stepscope/agent/probes/keras/keras_steps.py",
        "/home/me/src/stepscope/agent/sampling/cpu_timer.py",
        r"C:\site-packages\stepscope\agent\core\patches.py",
    ],
)
@pytest.mark.parametrize("run_dir", ["", "/dev/shm/stepscope-0-x"])
def test_frames_of_an_installed_agent_are_left_out(agent: str, run_dir: str) -> None:
    """Under ``enable`` the agent runs from the installed package, not from the run's folder; the user's code stays."""
    made = Job(ended_ns=1_000 * MS)
    made.samples([5], Frame(SCRIPT, "main", 3), Frame(agent, "_wrap", 9), Frame(SCRIPT, "step", 5))
    made.samples([9], Frame(SCRIPT, "main", 3), Frame(agent, "_on_signal", 9))
    session = session_of(made)
    session = replace(session, manifest=msgspec.structs.replace(session.manifest, run_dir=run_dir))
    (profile,) = session_stacks.profiles(session)
    assert {f.function for f in profile.frames} == {"main", "step"}
    assert profile.total == 100 * MS


def test_deep_stacks_say_where_frames_are_missing() -> None:
    """The agent keeps the outermost fifteen frames and the innermost forty-five."""
    made = Job(ended_ns=1_000 * MS)
    made.samples([5], *(Frame(SCRIPT, f"f{i}", i) for i in range(60)))
    (profile,) = session_stacks.profiles(session_of(made))
    chain = [f.function for f in profile.frames_of(int(profile.samples.stack[0]))]
    assert chain[14:17] == ["f14", "[frames left out]", "f15"]
    assert profile.samples.flags.tolist() == [StackFlag.TRUNCATED]


def test_captures_of_one_event_are_one_profile() -> None:
    """In the order of captures; Python comes last."""
    session = replace(
        session_of(job()), stacks=[of_text({"a": 1}), of_text({"a": 2}, event="page-faults"), of_text({"b": 3})]
    )
    profiles = session_stacks.profiles(session)
    assert [profile.event for profile in profiles] == ["cpu", "page-faults", "python"]
    assert lines_of(profiles[0]) == {"a": 1, "b": 3}


@pytest.mark.parametrize(("known", "said"), [(True, "train.ipynb cell 3:9"), (False, "notebook cell 77:7")])
def test_cells_are_named_as_in_reports(known: bool, said: str) -> None:
    """No frame has the number of the kernel's process, which no other run shares."""
    made = Job()
    made.samples([5 * MS], Frame(SCRIPT, "main", 4), Frame("/tmp/ipykernel_12/77.py", "slow", 7))
    session = made.session()
    cells = (NotebookCell(hash="77", name="train.ipynb cell 3", above=2),) if known else ()
    session = replace(session, manifest=msgspec.structs.replace(session.manifest, cells=cells))
    (profile,) = session_stacks.profiles(session)
    assert [f"{frame.file}:{frame.line}" for frame in profile.frames] == [f"{SCRIPT}:4", said]


def test_nothing_sampled_is_no_profile() -> None:
    """A job too short for a sample."""
    assert session_stacks.profiles(session_of(Job())) == ()


def test_within_takes_what_lies_inside() -> None:
    """Borders: a span has its begin and not its end; no span has nothing."""
    (profile,) = session_stacks.profiles(session_of(job()))
    assert session_stacks.within(profile, [(100 * MS, 150 * MS), (199 * MS, 300 * MS)]).total == 100 * MS
    assert session_stacks.within(profile, []).total == 0
    untimed = of_text({"a": 5})
    assert session_stacks.within(untimed, [(0, 1)]).total == 5


def test_windows_end_with_the_job() -> None:
    """Python is sampled all the time; a capture's end that is not known is the job's."""
    session = replace(session_of(job()), stacks=[replace(of_text({"a": 1}), begin_ns=5, end_ns=-1)])
    assert session_stacks.windows(session, "cpu") == [(5, 2_000 * MS)]
    assert session_stacks.windows(session, "python")[0][1] == 2_000 * MS


def test_off_cpu_stacks_end_in_what_was_waited_for() -> None:
    """A wait seen by a look, one on its stack without a look, one inside of the framework; what ran is left out."""
    made = Job(ended_ns=2_000 * MS)
    looked(made, look(made, "recvfrom", "socket", "10.0.0.7:6379"), [100 * MS], MAIN, STEP)
    made.samples([200 * MS], MAIN, STEP)
    made.samples([300 * MS], MAIN)
    looked(made, look(made, "running"), [400 * MS], MAIN)
    made.samples([500 * MS], MAIN, STEP, flags=int(Flag.CPU))
    made.samples([600 * MS], MAIN, thread=POOL)  # it may have run
    profile = next(p for p in session_stacks.profiles(session_of(made)) if p.event == "off-cpu")
    chains = [[f.function for f in profile.frames_of(int(stack))] for stack in profile.samples.stack.tolist()]
    assert chains == [["main", "step", "[recvfrom] 10.0.0.7:6379"]] * 2 + [["main", "[off CPU]"]]
    python = next(p for p in session_stacks.profiles(session_of(made)) if p.event == "python")
    waits = (python.samples.flags & StackFlag.WAITING) != 0
    assert python.samples.at_ns[waits].tolist() == profile.samples.at_ns.tolist()
    assert session_stacks.windows(session_of(made), "off-cpu") == session_stacks.windows(session_of(made), "python")
