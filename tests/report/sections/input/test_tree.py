"""The input pipeline as the report shows it: what is slow, who waits for whom, which stage to mend."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, US, Job, node
from tests.detectors.jobs import PERIOD, train_loop

from stepscope.causes.input import input_cause
from stepscope.derive.steps_view import StepsView
from stepscope.derive.view import SessionView
from stepscope.diagnosis import analyze
from stepscope.model.report.input_tree import InputTree
from stepscope.report.document import input_stages
from stepscope.report.sections.input import tree


def waiting(wait: int, *, busy: int, threads: int = 1) -> Job:
    """Steps of 80 ms, ``wait`` of it for a prefetched map that takes ``busy`` a batch."""
    job = Job()
    source = job.dataset("RangeDataset", line=70)
    made = job.dataset("MapDataset", source, line=71, parallel=threads if threads > 1 else 0, fn_name="load")
    made = job.dataset("PrefetchDataset", job.dataset("BatchDataset", made, line=72, batch=32), line=73)
    iterator = job.iterator(made, batch=32)
    job.function().every(PERIOD, 100, dur=PERIOD - wait - 1 * MS, start=wait)
    job.nexts().every(PERIOD, 100, dur=wait, arg=iterator)
    job.model(
        iterator,
        90 * PERIOD,
        [
            node(1, "Prefetch", 2, elements=90, busy=90 * 10 * US),
            node(2, "BatchV2", 3, elements=90, busy=90 * 100 * US),
            node(3, "ParallelMapV2", 4, elements=90 * 32, busy=90 * busy, parameters={"parallelism": threads}),
            node(4, "Range", elements=90 * 32, busy=90 * US),
        ],
    )
    return job


def of(job: Job) -> InputTree:
    """The tree of the job's report."""
    found = analyze.report_of(job.session()).input_tree
    assert found is not None
    return found


def test_the_slowest_stage_is_the_one_to_mend() -> None:
    """What comes after it waits for its input, what comes before it for its consumer."""
    found = of(waiting(60 * MS, busy=60 * MS))
    assert [(s.name, s.depth) for s in found.stages if s.mend] == [("ParallelMapV2", 2)]
    assert [s.waits_for for s in found.stages][2] == "other"
    assert found.stages[0].waits_for == "input"
    assert "mend ParallelMapV2 of load" in found.text
    assert found.stages[2].place is not None
    assert found.stages[2].place.line == 71


def test_it_is_the_stage_of_the_finding() -> None:
    """The tree and the finding come from one cause."""
    report = analyze.report_of(waiting(60 * MS, busy=60 * MS).session())
    assert report.input_tree is not None
    named = {ref for f in report.findings if f.code == "INP001" for e in f.evidence for ref in e.refs}
    assert {f"stage:{s.name}" for s in report.input_tree.stages if s.mend} <= named
    wait = sum(part.ratio for part in report.anatomy if part.component == "input-wait")
    assert report.input_tree.wait_ratio == pytest.approx(wait)


def test_nothing_is_mended_where_the_steps_hardly_wait() -> None:
    """A slow stage that keeps up is no fault: all wait for the consumer."""
    found = of(waiting(1 * MS, busy=60 * MS))
    assert not any(stage.mend for stage in found.stages)
    assert {stage.waits_for for stage in found.stages} <= {"", "consumer"}
    assert found.text.endswith("no stage is worth mending")


def test_threads_divide_the_time_of_a_stage() -> None:
    """The own time is of all threads, that of a batch divided by them."""
    slow = next(s for s in of(waiting(30 * MS, busy=120 * MS, threads=4)).stages if s.name == "ParallelMapV2")
    assert (slow.parallelism, slow.asked_parallel) == (4, 4)
    assert slow.batch_ns == slow.self_ns // 4


def test_without_input_there_is_no_tree() -> None:
    """A loop over arrays has no pipeline."""
    assert analyze.report_of(train_loop(10_000_000).session()).input_tree is None


def test_a_tree_that_fails_leaves_the_report_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tf.data says of its stages may be anything."""

    def fails(view: StepsView) -> None:
        raise ZeroDivisionError("of no elements")

    monkeypatch.setattr(input_cause, "build", fails)
    found, problems = tree.build(SessionView(waiting(60 * MS, busy=60 * MS).session()))
    assert found is None
    assert [one.code for one in problems] == ["DX076"]


def test_rows_for_the_offline_page() -> None:
    """One a stage, deeper ones indented."""
    rows = input_stages.tree_rows(of(waiting(60 * MS, busy=60 * MS)))
    assert rows[2][0].endswith("ParallelMapV2 load (mend this first)")
    assert rows[2][1].endswith(":71")
    assert rows[0][3].endswith("for its input")
