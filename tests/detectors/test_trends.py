"""What looks like a trend and is none, and what several detectors see of one root."""

from __future__ import annotations

import dataclasses

import msgspec
import numpy as np
import pytest
from tests.derive.sessions import MS, POOL, SCRIPT, TRACED, Frame, Job, S
from tests.detectors.jobs import LOOP_LINE, MAIN_CALL, PERIOD, REPORT, STEPS, called_back, nothing, saving
from tests.detectors.trend_jobs import (
    MB,
    crowded,
    filling,
    hung,
    leaking,
    loading,
    remembering,
    rising,
    stalled,
    summarised,
)

from stepscope.app.report.analyze import report_of
from stepscope.derive.view import SessionView
from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.model.log.events import ThreadDied
from stepscope.model.report.finding import Checked, Finding
from stepscope.wire.kinds import Kind


def look(job: Job) -> tuple[tuple[Finding, ...], dict[str, Checked]]:
    """What all detectors say, the costliest first; none may fail."""
    findings, checked, failures = run(ALL, job.view())
    assert failures == ()
    return findings, {c.detector: c for c in checked}


def codes(job: Job) -> list[str]:
    """The codes of what is found."""
    return [f.code for f in look(job)[0]]


def test_one_root_is_one_finding() -> None:
    """Slow Python that gets slower and slower is told once, as what rises; the other detector says who tells it."""
    findings, checked = look(rising(10 * MS, 150 * MS))
    assert [f.code for f in findings] == ["TRD001"]
    assert checked["HST001"].outcome == "clear"
    assert "TRD001" in checked["HST001"].hint


def test_steady_slow_python_does_not_rise() -> None:
    """Python that takes as long at the end as at the start is slow Python only."""
    assert codes(rising(80 * MS, 80 * MS)) == ["HST001"]


def test_a_compiled_step_that_alone_gets_slower_is_undecided() -> None:
    """Nothing shows whether the input of a compiled step grew by plan: no finding, but not clear."""
    findings, checked = look(rising(MS, MS, call=50 * MS, call_last=150 * MS))
    assert findings == ()
    assert checked["TRD001"].outcome == "undecided"


def test_larger_batches_are_no_slower_steps() -> None:
    """Python that takes longer because the batch has grown is the same time per sample."""
    job = rising(10 * MS, 40 * MS, call=30 * MS, call_last=120 * MS)
    job.records = [
        r._replace(arg=10 + (r.start_ns // PERIOD) * 30 // STEPS) if r.kind == Kind.FUNCTION else r for r in job.records
    ]
    assert "TRD001" not in codes(job)


@pytest.mark.parametrize("until", [30, 50, 70])
def test_a_buffer_that_fills_is_no_leak(until: int) -> None:
    """Memory that rises and then stands still, early or late, is no leak."""
    assert codes(filling(20 * MB, until)) == []


def test_reserved_memory_that_is_touched_is_no_leak() -> None:
    """A buffer that was allocated whole and is filled step by step ends at its size: its address space stands still."""
    assert codes(remembering(lambda n: 400 * MB + 20 * MB * n, reserved=lambda _: 3000 * MB)) == []


def test_mapped_files_are_no_leak() -> None:
    """Pages of files that come in as they are read are the kernel's to take back."""
    job = leaking(20 * MB)
    grown = job.processes.rss_bytes - job.processes.rss_bytes[0]
    job.processes = dataclasses.replace(job.processes, shared_bytes=job.processes.shared_bytes + grown)
    assert codes(job) == []


def test_a_loop_that_predicts_may_keep_its_results() -> None:
    """Memory that rises while nothing is trained is undecided: results may be what the job is for."""
    findings, checked = look(remembering(lambda n: 400 * MB + 20 * MB * n, predicts=True))
    assert findings == ()
    assert checked["MEM001"].outcome == "undecided"


def test_a_saw_tooth_is_no_leak() -> None:
    """Memory that is given back now and then does not leak."""
    assert codes(remembering(lambda n: 400 * MB + 20 * MB * (n % 37))) == []


@pytest.mark.parametrize(("cardinality", "outcome"), [(100_000, "undecided"), (-2, "undecided"), (300, "found")])
def test_a_cache_in_its_first_pass_is_undecided(cardinality: int, outcome: str) -> None:
    """While a cache may still be filling nothing is said; memory that rises after the first pass is a leak."""
    job = leaking(20 * MB)
    source = job.dataset("TensorSliceDataset", line=70)
    cache = job.dataset("CacheDataset", source, line=71, cardinality=cardinality)
    iterator = job.iterator(job.dataset("BatchDataset", cache, line=72, batch=8), batch=8)
    job.nexts().every(PERIOD, STEPS, dur=MS, start=90 * MS, arg=iterator)
    assert look(job)[1]["MEM001"].outcome == outcome


def test_a_job_that_ran_out_of_memory_lost_its_work() -> None:
    """Killed with no memory left: what it did since its last checkpoint is the cost."""
    job = leaking(100 * MB, left=200 * MB)
    job.save().at(50 * PERIOD, MS)
    session = job.session()
    manifest = msgspec.structs.replace(session.manifest, exit_code=-9)
    view = SessionView(dataclasses.replace(session, manifest=manifest))
    (found,) = (f for f in run(ALL, view)[0] if f.code == "MEM001")
    assert found.symptom == "Memory: out of memory"
    assert found.severity == "high"
    assert found.cost.ratio == pytest.approx(0.5, abs=0.02)


def test_graphs_that_pile_up_are_named() -> None:
    """Where graphs are traced as memory rises, making them once is the first remedy."""
    job = leaking(20 * MB)
    for i in range(1, STEPS):
        job.trace(i * PERIOD, MS, cause="new-function", ordinal=1, function_key=i)
    job.records = [r._replace(flags=TRACED) if r.kind == Kind.FUNCTION else r for r in job.records]
    (found,) = (f for f in look(job)[0] if f.code == "MEM001")
    assert found.remedies[0].id == "make-once"


def test_nothing_about_a_job_without_steps() -> None:
    """Without steps there is no trend to look at, and that is said."""
    _, checked = look(nothing())
    assert {checked[c].outcome for c in ("TRD001", "MEM001")} == {"not-applicable"}


def test_trends_of_a_short_run_are_not_looked_at() -> None:
    """Too few samples of memory are no clear answer."""
    job = leaking(20 * MB)
    job.processes = job.processes.take(np.arange(len(job.processes)) < 6)
    assert look(job)[1]["MEM001"].outcome == "not-applicable"
    assert SCRIPT in job.sources


def test_stalls_at_random_have_no_period() -> None:
    """Steps that are slow at any moment are slow, and not periodic."""
    job = stalled(200 * MS, [3, 17, 21, 40, 46, 71, 90])
    assert "HST009" not in codes(job)


def test_a_stall_that_is_missed_now_and_then_has_a_period() -> None:
    """Two of the stalls are missing: the intervals are multiples of the period."""
    (found,) = (f for f in look(stalled(200 * MS, [10, 20, 40, 50, 60, 80, 90]))[0] if f.code == "HST009")
    assert "every 10 steps" in found.title


def test_a_period_in_seconds() -> None:
    """Stalls by the clock come after any number of steps: the period is told in seconds."""
    job = Job()
    step = job.function()
    now, due = 0, S
    lengths = np.random.default_rng(3).integers(20 * MS, 170 * MS, 400)
    for i in range(400):
        usual = int(lengths[i])
        step.at(now, usual - MS)
        now += usual
        if now >= due:
            now += 400 * MS
            due += 3 * S
    (found,) = look(job)[0]
    assert (found.code, found.confidence) == ("HST009", 0.6)  # no samples: who it is is unknown
    assert "every 3" in found.title
    assert " s " in found.title


@pytest.mark.parametrize(
    ("job", "code"), [(saving(60 * MS, calls=9, every=10), "HST006"), (called_back(900 * MS, every=10), "HST004")]
)
def test_what_others_name_is_not_named_twice(job: Job, code: str) -> None:
    """A save or a callback every ten steps is one finding, by the detector that knows it."""
    assert codes(job) == [code]


def test_garbage_that_the_loop_collects() -> None:
    """A collection that the loop asks for is named by its line; one that Python starts is Python's."""
    (found,) = look(stalled(200 * MS, part=Kind.GC))[0]
    assert "Python's garbage collection" in found.title
    assert found.remedies[0].id == "freeze-objects"
    job = stalled(200 * MS, part=Kind.GC)
    job.sources[SCRIPT] = job.sources[SCRIPT].replace("tidy()", "gc.collect()")
    (found,) = look(job)[0]
    assert "gc.collect()" in found.title
    assert found.where[0].line == LOOP_LINE + 6
    assert found.remedies[0].id == "do-not-collect"


def test_another_thread_of_the_job_is_named() -> None:
    """Calls that stall while a thread of the job's own runs Python are that thread's."""
    job = stalled(200 * MS, part=Kind.FUNCTION)
    job.records = [r for r in job.records if r.kind != Kind.SAMPLE]
    for number in range(10, STEPS - 1, 10):
        starts = sorted(r.start_ns for r in job.records if r.kind == Kind.FUNCTION and r.name == 1)
        job.samples([starts[number] + 150 * MS], Frame("/job/watch.py", "audit", 7), thread=POOL)
    (found,) = (f for f in look(job)[0] if f.code == "HST009")
    assert "another thread, in audit" in found.title
    assert (found.where[0].file, found.where[0].line) == ("watch.py", 7)


def test_a_neighbour_with_a_period_is_named() -> None:
    """Calls that stall in the seconds in which another process is busy are that process's."""
    job = stalled(500 * MS, part=Kind.FUNCTION)
    job.machine(12)
    job.rival("/usr/bin/backup --all", cores=0.0, seconds=1)
    starts = sorted(r.start_ns for r in job.records if r.kind == Kind.FUNCTION and r.name == 1)
    stalls = {starts[n] // S + 1 for n in range(10, STEPS - 1, 10)}
    job.rivals = [
        {
            "at_ns": s * S,
            "pid": 9,
            "name": 0,
            "child": 0,
            "cpu_ns": round(1.5 * S) if s in stalls else S // 100,
            "interval_ns": S,
        }
        for s in range(1, 13)
    ]
    (found,) = (f for f in look(job)[0] if f.code == "HST009")
    assert "the process backup" in found.title
    assert found.remedies[0].id == "separate-cpu"


SELECT = Frame("/usr/lib/python3.11/selectors.py", "select", 400, own=False)
SUBPROCESS = Frame("/usr/lib/python3.11/subprocess.py", "wait", 1264, own=False)


def test_a_job_that_computes_after_its_last_step_does_not_hang() -> None:
    """Statistics after training, in Python or in C, are no hang, however they end."""
    assert "HNG001" not in codes(hung(30, cores=0.9))


def test_a_thread_that_died_is_named_where_the_job_hangs() -> None:
    """Who died, of what and where stands in the title and first among the places; a short wait is a hang then."""
    died = ThreadDied(
        thread=POOL, name="filler", error="AttributeError", file="/job/loader.py", function="load", line=14
    )
    for seconds in (30, 6):
        job = hung(seconds)
        job.event(died)
        (found,) = (f for f in look(job)[0] if f.code == "HNG001")
        assert "the thread filler died of AttributeError in load (loader.py:14)" in found.title
        assert (found.where[0].file, found.where[0].line) == ("loader.py", 14)
        assert [r.id for r in found.remedies] == ["hand-errors-over", "bound-the-wait"]
    assert "HNG001" not in codes(hung(6))


def test_a_thread_that_died_is_told_where_the_job_went_on() -> None:
    """No finding, as nothing waits for it: a note of the report, with how many died."""
    job = hung(30, exit_code=0)
    for name in ("filler", "other"):
        job.event(ThreadDied(thread=POOL, name=name, error="ValueError"))
    report = report_of(job.session())
    assert "HNG001" not in [f.code for f in report.findings]
    (said,) = (d.text for d in report.diagnostics if d.code == "DX170")
    assert said.startswith("the thread filler died of ValueError (the first of 2 threads that died): ")


def test_a_job_that_writes_after_its_last_step_does_not_hang() -> None:
    """A last file that is being written is progress, although the thread waits for the disk."""
    job = hung(30)
    written = job.processes.at_ns // S * 3 * MB
    job.processes = dataclasses.replace(job.processes, write_bytes=written)
    assert "HNG001" not in codes(job)


def test_a_job_that_waits_for_its_working_child_does_not_hang() -> None:
    """Waiting for a process of its own that computes is no hang; waiting for a thread is, whatever others do."""
    for inside, found in ((SUBPROCESS, False), (Frame("/usr/lib/python3.11/queue.py", "get", 171, own=False), True)):
        job = hung(30, inside=inside)
        job.rival("/usr/bin/convert --all", cores=0.9, seconds=39, child=True)
        assert ("HNG001" in codes(job)) is found


@pytest.mark.parametrize("job", [hung(30, inside=SELECT), hung(30, trains=False)])
def test_what_may_wait_for_requests_is_undecided(job: Job) -> None:
    """A server, and a loop that only predicts, may have had nothing to do."""
    findings, checked = look(job)
    assert "HNG001" not in [f.code for f in findings]
    assert checked["HNG001"].outcome == "undecided"


def test_a_wait_like_those_before_is_no_hang() -> None:
    """A job that waited half as long before, and went on, was killed while it waited again."""
    job = hung(30)
    job.records = [r for r in job.records if r.kind != Kind.FUNCTION or not 30 <= r.start_ns // PERIOD < 90]
    assert "HNG001" not in codes(job)


def test_threads_that_are_gone_are_named() -> None:
    """The thread that no sample sees any more is named with its last line: it may have been the one waited for."""
    (found,) = (f for f in look(hung(30))[0] if f.code == "HNG001")
    assert "loader.py:20" in found.explanation
    assert "last seen" in found.explanation


def test_a_hang_in_the_framework_before_the_first_step() -> None:
    """A job that never makes a step and waits inside of the framework hangs too."""
    job = Job(exit_code=-15, ended_ns=40 * S)
    grpc = Frame(
        "/usr/lib/python3/site-packages/tensorflow/python/eager/context.py", "ensure_initialized", 600, own=False
    )
    job.samples(range(10 * S, 40 * S, 50 * MS), Frame(SCRIPT, "main", REPORT), grpc)
    job.machine(40, got=0.0)
    (found,), checked = look(job)
    assert found.code == "HNG001"
    assert "before the first step" in found.title
    assert found.introduced_stage == "initialization"
    assert checked["TRD001"].outcome == "not-applicable"


def test_loading_that_a_busy_machine_stretches_is_not_slow() -> None:
    """What takes little CPU time is not slow by itself; files read one by one for long are."""
    assert "INI001" not in codes(loading(9900 * MS, used=0.2))
    assert "INI001" in codes(loading(16 * S, used=0.1))


def test_a_slow_session_is_named() -> None:
    """What ONNX Runtime takes to make a session is told as that, with what helps there."""
    job = loading(9900 * MS)
    job.call(Kind.BUILD, "InferenceSession", role="session").at(0, 9800 * MS)
    (found,) = [f for f in look(job)[0] if f.code == "INI001"]
    assert "most of it in InferenceSession" in found.title
    assert (found.cause, found.remedies[0].id) == ("API: inefficient API usage", "keep-the-optimised-model")


def test_a_session_that_is_made_beside_what_is_slow_is_not() -> None:
    """A short build within a long loading is not what the loading is."""
    job = loading(9900 * MS)
    job.call(Kind.BUILD, "InferenceSession", role="session").at(0, 900 * MS)
    (found,) = [f for f in look(job)[0] if f.code == "INI001"]
    assert "InferenceSession" not in found.title


def test_loading_is_short_against_a_long_run() -> None:
    """The same loading before ten times the steps is no finding."""
    job = loading(3500 * MS)
    assert "INI001" in codes(job)
    job.records = [
        r if r.kind != Kind.FUNCTION else r._replace(start_ns=r.start_ns * 10, dur_ns=200 * MS) for r in job.records
    ]
    assert "INI001" not in codes(job)


def test_own_threads_of_python_are_named() -> None:
    """A pool of the job's own is named by the code that runs in it, and its size is the first remedy."""
    (found,) = look(crowded(40, own=True))[0]
    assert "many in augment" in found.title
    assert found.where[-1].file == "loader.py"
    assert found.remedies[0].id == "smaller-pool"


@pytest.mark.parametrize("job", [crowded(6), crowded(40, switches=5_000)])
def test_pools_of_usual_size_and_cost_are_none(job: Job) -> None:
    """A few threads more than CPUs, or many that seldom switch, cost nothing."""
    assert codes(job) == []


def test_neighbours_make_no_crowd() -> None:
    """Two threads that wait long because others use the CPUs are starved, not many."""
    job = crowded(2, runnable=2.0)
    job.machine(10, cpus=2, got=0.6, waiting=1.4, others=1.4)
    assert codes(job) == ["CFG001"]


def test_summaries_that_take_time_are_one_finding() -> None:
    """Summaries that block the steps and fill the disk are told once, by what they cost."""
    assert codes(summarised(MB, dur=10 * MS)) == ["HST006"]


def test_what_rises_is_the_usual_call() -> None:
    """A few calls that a busy machine stretched, early or late, do not decide which callback is named."""
    job = Job()
    job.loop("fit", line=50).at(0, STEPS * PERIOD * 2)
    step, report, log = (
        job.execution(),
        job.callback("Report.on_train_batch_end"),
        job.callback("Log.on_train_batch_end"),
    )
    now = 0
    for i in range(STEPS):
        step.at(now, 50 * MS, arg=1)
        late = 40 * MS if i == STEPS - 3 else MS // 50
        drawn = (10 + i // 2) * MS + (600 * MS if i in {4, 9} else 0)
        report.at(now + 50 * MS, drawn)
        log.at(now + 50 * MS + drawn, late)
        job.samples([now + 20 * MS], Frame(SCRIPT, "main", REPORT))
        now += 50 * MS + drawn + late + MS
    (found,) = (f for f in look(job)[0] if f.code == "TRD001")
    assert "the callback Report.on_train_batch_end" in found.title


@pytest.mark.parametrize(("name", "codes"), [("validate", []), ("train_step", ["HST009"])])
def test_another_function_every_ten_steps_is_work_and_no_stall(name: str, codes: list[str]) -> None:
    """A validation that the program calls every ten steps is wanted; a longer step each time is not."""
    job = Job()
    step = job.function(**MAIN_CALL)
    at = 0
    for i in range(STEPS):
        stalled = 300 * MS if i % 10 == 9 else 0
        if name == "train_step":
            step.at(at, PERIOD + stalled)
        else:
            step.at(at, PERIOD)
            if stalled:
                job.function(name, line=40, **{**MAIN_CALL, "call_line": 7}).at(at + PERIOD, stalled)
        at += PERIOD + stalled
    assert [f.code for f in look(job)[0]] == codes
