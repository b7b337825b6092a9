"""The ledger's entries in a report."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S

from stepscope.derive.view import SessionView
from stepscope.diagnosis import settle
from stepscope.diagnosis.analyze import report_of
from stepscope.model.log.events import ProcessEnded
from stepscope.report.sections import ledger
from stepscope.wire.kinds import Flag, Kind


def job(*, in_gap: int = 0, sampled: bool = True) -> Job:
    """A fit of 400 steps in a job of 10 s; with a gap of a second in which some steps were counted."""
    made = Job(ended_ns=10 * S)
    made.framework("tensorflow", at=2 * S, dur=1 * S)
    if sampled:
        made.samples(range(2 * S, 3 * S, 50 * MS), Frame(SCRIPT, "load", 12))
    run = made.execution()
    run.every(10 * MS, 200, dur=10 * MS, start=3 * S, arg=1)
    run.every(10 * MS, 200, dur=10 * MS, start=6 * S if in_gap else 5 * S, arg=1)
    if in_gap:
        made.gap(5 * S, 1 * S, in_gap)
    made.loop("fit", line=50).at(3 * S, 5 * S if in_gap else 4 * S)
    made.event(ProcessEnded(at=9 * S))
    return made


def test_entries_have_words_and_places() -> None:
    """An entry says what it is, and where in the user's code its time goes."""
    report = report_of(job().session())
    entries = {entry.phase: entry for entry in report.ledger if not entry.component}
    assert entries["imports"].text == "tensorflow"
    assert [(place.file, place.line, place.function) for place in entries["building"].where] == [
        ("train.py", 12, "load")
    ]
    assert "finishing the interpreter 1 s" in entries["end"].text
    assert sum(entry.ratio for entry in report.ledger) == 1.0
    assert all(entry.maker is None for entry in report.ledger)


def test_what_lies_between_steps_is_named() -> None:
    """Garbage collections between two fits are named with their time."""
    made = Job(ended_ns=12 * S)
    made.framework(at=2 * S, dur=1 * S)
    run = made.execution()
    run.every(10 * MS, 200, dur=10 * MS, start=2 * S, arg=1)
    made.loop("fit").at(2 * S, 2 * S)
    made.call(Kind.GC, "gc").every(1 * S, 3, dur=1 * S, start=4 * S)
    run.every(10 * MS, 200, dur=10 * MS, start=7 * S, arg=1)
    made.loop("fit").at(7 * S, 2 * S)
    made.event(ProcessEnded(at=9 * S))
    entries, _ = ledger.build(SessionView(made.session()))
    between = next(entry for entry in entries if entry.phase == "between-steps")
    assert between.ns == 3 * S
    assert between.text == "garbage collection 3 s of it"


def test_small_parts_need_no_explanation() -> None:
    """A part below 5 % is small; a larger one that nothing explains is unexplained."""
    view = SessionView(job().session())
    entries, _ = ledger.build(view)
    edge = [replace(entries[0], ratio=ratio) for ratio in (0.049, 0.05)]
    assert [entry.settled_by for entry in settle.settled(view, edge, (), {}, {})] == ["small", "unexplained"]


def test_what_was_extrapolated_says_so() -> None:
    """The text of a component names the share of its time that lies in gaps."""
    report = report_of(job(in_gap=100).session())
    compute = next(entry for entry in report.ledger if entry.component == "call")
    assert 0.15 < compute.unobserved_ratio < 0.25
    assert compute.text.endswith("% extrapolated to steps that were only counted")
    assert not [problem for problem in report.diagnostics if problem.code == ledger.OVERLAPS]


@pytest.mark.parametrize(("counted", "pace"), [(50, "2"), (200, "0.5"), (20, "4.8")])
def test_counted_steps_of_another_pace_say_so(counted: int, pace: str) -> None:
    """The parts of counted steps are those of the timed ones: where these were slower or faster, the text says it."""
    compute = next(entry for entry in report_of(job(in_gap=counted).session()).ledger if entry.component == "call")
    assert compute.text.endswith(f"only counted, which took {pace} times as long as the timed ones")


def test_building_without_stacks_says_so() -> None:
    """Stacks are not sampled where calls are counted: the text says how much of the time has no line."""
    made = job(sampled=False)
    for begin in (2 * S, 2900 * MS):
        made.samples(range(begin, begin + 101 * MS, 50 * MS), Frame(SCRIPT, "load", 12))
    made.gap(2100 * MS, 800 * MS, 200, Kind.SYNC)
    building = next(entry for entry in report_of(made.session()).ledger if entry.phase == "building")
    assert building.text.endswith("800 ms of it without stacks: calls were only counted meanwhile")
    assert [place.line for place in building.where] == [12]


@pytest.mark.parametrize(
    ("flags", "leaf", "said"),
    [
        (0, "", "no steps were seen, 91 % of it off the CPU: it waits, such as for threads of the framework"),
        (
            int(Flag.CPU),
            "backend_compile_and_load",
            "no steps were seen, 91 % of it in backend_compile_and_load; compiling 9 s of it",
        ),
        (int(Flag.CPU), "", "no steps were seen"),
    ],
)
def test_what_a_program_without_steps_does(flags: int, leaf: str, said: str) -> None:
    """It waits for threads of JAX's, it compiles in one function of a library, or it runs its own Python."""
    made = Job(ended_ns=12 * S)
    made.framework("jax", at=S, dur=S)
    below = (Frame("/usr/lib/python3/site-packages/jax/_src/compiler.py", leaf, 9, own=False),) if leaf else ()
    own = Frame(SCRIPT, "release", 83)
    made.samples(range(2 * S, 11 * S, 100 * MS), own, *below, dur=100 * MS, flags=flags)
    made.samples(range(11 * S, 12 * S, 100 * MS), own, dur=100 * MS, flags=int(Flag.CPU))
    entries, _ = ledger.build(SessionView(made.session()))
    assert next(entry.text for entry in entries if entry.phase == "building") == said


def test_an_overlap_is_told() -> None:
    """Parts that claim more time than there is are a diagnostic, from 1 % of the wall time."""
    report = report_of(job(in_gap=150, sampled=False).session())
    (said,) = [problem for problem in report.diagnostics if problem.code == ledger.OVERLAPS]
    assert "adds up to 105 %" in said.text or "adds up to 104 %" in said.text


def test_only_jobs_that_were_run_have_one() -> None:
    """A process that was attached to, or another tool's recording, has no beginning that was seen."""
    session = job().session()
    for mode in ("attach", "import"):
        changed = SessionView(session)
        changed.session = type(session)(
            **{
                **{name: getattr(session, name) for name in session.__struct_fields__},
                "manifest": replace(session.manifest, mode=mode),
            }
        )
        assert ledger.build(changed) == ((), ())


def test_garbage_collections_alone_are_no_steps() -> None:
    """A process that only imported a framework has a ledger of its start, its imports and its end."""
    made = Job(ended_ns=5 * S)
    made.framework(at=3 * S, dur=2 * S)
    made.call(Kind.GC, "gc").at(3 * S, 1 * S)
    made.event(ProcessEnded(at=4 * S))
    entries, _ = ledger.build(SessionView(made.session()))
    assert [(entry.phase, entry.ns) for entry in entries] == [
        ("start", 1 * S),
        ("imports", 2 * S),
        ("building", 1 * S),
        ("end", 1 * S),
    ]


@pytest.mark.parametrize(
    ("lost", "made"),
    [
        ("workers/7-1/events-000000000001-000000000001.parquet", False),
        ("workers/7-1/records-000000000000-000000000001.parquet", False),
        ("captures/optraces/ops-001.xplane.pb", True),
        ("tables/host-000000000000-000000000000.parquet", True),
    ],
)
def test_no_ledger_is_made_where_records_are_lost(lost: str, *, made: bool) -> None:
    """What is not in the files that are left would count as first steps, or as not seen."""
    job = Job(ended_ns=12 * S)
    job.framework("tensorflow", at=S, dur=S)
    job.step().every(10 * MS, 100, dur=10 * MS)
    session = msgspec.structs.replace(job.session(), lost_files=(lost,))
    assert bool(ledger.build(SessionView(session))[0]) == made


@pytest.mark.parametrize(
    ("lost", "said"), [((), "none"), (("workers/7-1/events-000000000001-000000000001.parquet",), "")]
)
def test_a_framework_that_cannot_be_read_is_not_known_to_be_absent(lost: tuple[str, ...], said: str) -> None:
    session = msgspec.structs.replace(Job(ended_ns=12 * S).session(), lost_files=lost)
    assert report_of(session).session.framework == said
