"""What a first run suggests to try."""

from __future__ import annotations

import msgspec
import pytest
from tests.report.samples import clean, finding

from stepscope.experiments import plan, proofs
from stepscope.model.report.input_bound import InputBound, InputEdit
from stepscope.model.report.ledger import LedgerEntry
from stepscope.model.report.report import Component, Report, StepMaker
from stepscope.tables.errors import UsageError
from stepscope.tables.findings import Evidence
from stepscope.tables.place import Place


def _report(**shares: float) -> Report:
    anatomy = tuple(
        Component(component=name.replace("_", "-"), pipeline_stage="none", ratio=ratio, ns_per_step=0)
        for name, ratio in shares.items()
    )
    return msgspec.structs.replace(clean(), anatomy=anatomy, findings=())


def _stepping(report: Report, source: str, step_ms: float) -> Report:
    """The report with steps of a source and a length."""
    assert report.session.step_times is not None
    times = msgspec.structs.replace(report.session.step_times, source=source, mean_ns=step_ms * 1e6)
    return msgspec.structs.replace(report, session=msgspec.structs.replace(report.session, step_times=times))


def test_long_steps_gain_little_from_fewer_calls() -> None:
    """The fixed cost of a step is about a millisecond, whatever the step's length."""
    report = _report(call=0.9, framework=0.1)
    short, long = (
        {one.trial: one.expected_ratio for one in plan.candidates(_stepping(report, "keras fit", step_ms))}
        for step_ms in (2.0, 200.0)
    )
    assert short["steps-per-execution:10"] == pytest.approx(0.325)
    assert "steps-per-execution:10" not in long


def test_components_suggest_what_shortens_them_the_largest_first() -> None:
    found = plan.candidates(_report(input_wait=0.6, callbacks=0.3, call=0.1))
    assert [one.trial for one in found if one.kind == "ceiling"][:2] == ["compute-only", "no-callbacks"]
    assert "input-wait takes 60 %" in found[0].reason


def test_small_components_suggest_nothing() -> None:
    assert plan.candidates(_report(input_wait=0.04, callbacks=0.04)) == ()


def test_a_finding_suggests_its_trial_with_its_cost() -> None:
    place = Place(file="train.py", line=7, function="Plots.on_train_batch_end")
    slow = msgspec.structs.replace(finding("HST004"), where=(place,))
    (first, *_) = plan.candidates(msgspec.structs.replace(_report(), findings=(slow,)))
    assert first.trial == "without-callback:Plots"
    assert first.expected_ratio == slow.cost.ratio


def test_unknown_costs_count_half_of_the_most_and_questions_half_of_that() -> None:
    """A function that takes half of the step and may be needed is worth a trial."""
    found = finding("HST004")
    cost = msgspec.structs.replace(found.cost, ratio=0.0, low=0.0, high=0.5, basis="unknown")
    heavy = msgspec.structs.replace(
        found, code="GEN001", severity="info", cost=cost, where=(Place(file="a.py", line=4),)
    )
    asked = msgspec.structs.replace(heavy, severity="ask")
    tried = [plan.candidates(msgspec.structs.replace(_report(), findings=(one,))) for one in (heavy, asked)]
    assert [[(one.trial, one.expected_ratio) for one in few] for few in tried] == [
        [("without-lines:a.py:4", 0.25)],
        [("without-lines:a.py:4", 0.125)],
    ]


def test_only_fits_of_keras_are_tried_without_callbacks() -> None:
    """A loop of the program's own has no callbacks and no steps per execution."""
    report = _report(callbacks=0.6, framework=0.4)
    sources = ("keras fit", "tf.function train_step")
    tried = [{one.trial.partition(":")[0] for one in plan.candidates(_stepping(report, of, 2.0))} for of in sources]
    assert tried[0] - tried[1] == {"no-callbacks", "steps-per-execution"}


@pytest.mark.parametrize(("doing", "tried"), [("", ["gc-off"]), (" (gc.collect)", ["gc-off", "gc-calls-off"])])
def test_calls_of_the_collector_are_left_out_where_there_are_some(doing: str, tried: list[str]) -> None:
    """Python also collects by itself."""
    found = msgspec.structs.replace(
        finding("HST004"), code="GEN010", where=(), title=f"Python's garbage collection takes 40 %, often in run{doing}"
    )
    report = msgspec.structs.replace(_report(gc=0.4), findings=(found,))
    assert [one.trial for one in plan.candidates(report)] == tried


def test_the_remedy_decides_where_a_detector_has_several() -> None:
    """Summaries and checkpoints are found by one detector, and tried by two trials."""
    blocking = msgspec.structs.replace(finding("HST004"), code="HST006")
    (remedy, *_) = blocking.remedies
    summaries = msgspec.structs.replace(remedy, id="summaries-less-often")
    assert proofs.trials_of(blocking) == ("no-checkpoints",)
    assert proofs.trials_of(msgspec.structs.replace(blocking, remedies=(summaries,))) == ("no-summaries",)


@pytest.mark.parametrize(
    ("remedy", "trials"),
    [
        ("relax-shapes", ("reduce-retracing",)),
        ("make-function-once", ("functions-reused",)),
        ("pass-tensors", ()),
        ("fix-dtype", ()),
        ("fix-structure", ()),
    ],
)
def test_a_trace_is_saved_by_the_trial_for_its_cause(remedy: str, trials: tuple[str, ...]) -> None:
    """No trial makes a tensor of a Python number, and functions that are made once cannot be reused."""
    retraced = msgspec.structs.replace(finding("HST004"), code="GRF001")
    (first, *_) = retraced.remedies
    retraced = msgspec.structs.replace(retraced, remedies=(msgspec.structs.replace(first, id=remedy),))
    assert proofs.trials_of(retraced) == trials


@pytest.mark.parametrize(
    ("code", "place", "trials"),
    [
        ("HST001", Place(file="a.py", line=3), ("stub:a.py:3",)),
        ("HST001", Place(file="", line=3), ()),
        ("HST004", Place(file="a.py", line=3, function="main"), ("no-callbacks",)),
        ("HST002", Place(file="a.py", line=3), ("graph-function:a.py:3",)),
        ("GRF012", Place(file="a.py", line=3, end_line=5), ("without-lines:a.py:3-5",)),
        ("GRF012", Place(file="a.py", line=3, cell=2), ()),
        ("MEM001", Place(file="a.py", line=3), ()),
    ],
)
def test_the_argument_of_a_trial_comes_from_the_place(code: str, place: Place, trials: tuple[str, ...]) -> None:
    assert proofs.trials_of(msgspec.structs.replace(finding("HST004"), code=code, where=(place,))) == trials


@pytest.mark.parametrize(("batch", "trial"), [(1, "batch:32"), (2, "batch:32"), (6, "batch:16"), (8, "batch:16")])
def test_a_small_batch_is_tried_at_the_size_that_its_gain_is_modelled_for(batch: int, trial: str) -> None:
    """Four times two samples are still a small batch, and no other factor is tried beside it."""
    small = msgspec.structs.replace(
        finding("HST004"), code="CFG002", evidence=(Evidence(metric="batch", value=batch, unit="samples"),)
    )
    assert proofs.trials_of(small) == (trial, "steps-per-execution:10")
    tried = [one.trial for one in plan.candidates(msgspec.structs.replace(_report(call=1.0), findings=(small,)))]
    assert [one for one in tried if one.startswith("batch")] == [trial]


def test_lines_of_one_function_are_left_out_together() -> None:
    """A caller of the function, and a line of another file, stay."""
    lines = ((7, "loss"), (4, "loss"), (20, "step"))
    where = tuple(Place(file="a.py", line=line, function=function) for line, function in lines)
    assert proofs.without((*where, Place(file="b.py", line=1, function="loss"))) == "without-lines:a.py:4-7"
    assert proofs.without((Place(file="a.py", line=7), Place(file="a.py", line=90))) == "without-lines:a.py:7"


def test_compute_that_nothing_explains_suggests_its_costliest_line() -> None:
    """Where a finding explains it, that finding's lines are tried instead."""
    entry = LedgerEntry(
        phase="steps", component="call", ns=80, ratio=0.4, settled_by="unexplained", where=(Place(file="a.py", line=7),)
    )
    waiting = LedgerEntry(phase="steps", component="input-wait", ns=20, ratio=0.1, settled_by="general")
    tried = {
        settled: [
            (one.trial, one.expected_ratio)
            for one in plan.candidates(
                msgspec.structs.replace(_report(), ledger=(msgspec.structs.replace(entry, settled_by=settled), waiting))
            )
        ]
        for settled in ("unexplained", "general", "finding")
    }
    assert tried["unexplained"] == tried["general"] == [("without-lines:a.py:7", 0.2)]
    assert tried["finding"] == []
    maker = StepMaker(kind="step", title="tf.function step", place=Place(file="a.py", line=7), pid=1, count=9)
    report = msgspec.structs.replace(_report(), ledger=(entry, waiting))
    caller = msgspec.structs.replace(report.session, step_makers=(maker,))
    assert plan.candidates(msgspec.structs.replace(report, session=caller)) == ()


def test_a_line_that_a_finding_names_gets_that_findings_trial() -> None:
    """Although leaving the line out would bring more: that is no remedy."""
    place = Place(file="a.py", line=7)
    entry = LedgerEntry(phase="steps", component="call", ns=80, ratio=0.4, settled_by="unexplained", where=(place,))
    kernel = msgspec.structs.replace(finding("GRF022"), where=(place,))
    report = msgspec.structs.replace(_report(), ledger=(entry,), findings=(kernel,))
    assert [one.trial for one in plan.candidates(report)] == ["small-kernels"]
    small = msgspec.structs.replace(kernel, cost=msgspec.structs.replace(kernel.cost, ratio=0.01))
    report = msgspec.structs.replace(report, findings=(small,))
    assert [one.trial for one in plan.candidates(report)] == ["without-lines:a.py:7"]


def test_every_trial_of_a_detector_exists() -> None:
    """No finding names a trial that ``whatif`` refuses."""
    known = (*proofs.OF_CODE.values(), *proofs.OF_REMEDY.values())
    places = (Place(file="a.py", line=1, end_line=4, function="A.f"), Place(file="a.py", line=3, function="A.f"))
    found = msgspec.structs.replace(finding("HST004"), where=places)
    for trial in {proofs.filled(template, found) for templates in known for template in templates}:
        assert plan.kind_of(trial) in {"gain", "ceiling"}


def test_the_line_within_a_map_is_left_out_not_the_whole_map() -> None:
    """Its place lies within that of the function; without one, another trial is the first."""
    call, function = Place(file="a.py", line=20), Place(file="a.py", line=5, end_line=12, function="prepared")
    found = msgspec.structs.replace(finding("INP012"), where=(call, function, Place(file="a.py", line=9)))
    assert proofs.trials_of(found)[0] == "without-lines:a.py:9"
    found = msgspec.structs.replace(finding("INP012"), where=(call, function))
    assert proofs.trials_of(found)[0] == "compute-only"


def test_an_unknown_trial_is_refused() -> None:
    with pytest.raises(UsageError, match="expected one of"):
        plan.named(["nothing"])


def test_what_findings_say_of_compute_comes_before_guesses() -> None:
    """XLA may make any compute faster, or slower; a finding has seen something."""
    cost = msgspec.structs.replace(finding("HST004").cost, ratio=0.12)
    large = msgspec.structs.replace(finding("HST004"), code="GRF022", cost=cost)
    tried = [one.trial for one in plan.candidates(msgspec.structs.replace(_report(call=1.0), findings=(large,)))]
    assert tried.index("small-kernels") < tried.index("xla-on")
    assert tried[0] != "xla-on"
    assert plan.candidates(_report(call=1.0))[0].trial == "xla-on"


def test_the_edits_of_the_input_are_tried_by_what_they_gain() -> None:
    """What the model of the stages says counts for all edits together."""
    bound = InputBound(
        text="",
        unit="samples",
        now_per_s=100.0,
        best_per_s=400.0,
        without_cache_per_s=400.0,
        binds="cores",
        cores=1.0,
        step_ns=1,
        step_cpu_ns=1,
        memory_bytes=0.0,
        trial="input-edits:a.py:filter@9<map@8",
    )
    found = plan.candidates(msgspec.structs.replace(_report(input_wait=0.9), input_bound=bound))
    assert ("gain", 0.75) in {(one.kind, one.expected_ratio) for one in found if one.trial == bound.trial}
    cache = InputEdit(kind="cache", text="", per_s=400.0, binds="cores")
    unsure = msgspec.structs.replace(bound, edits=(cache,))
    found = plan.candidates(msgspec.structs.replace(_report(input_wait=0.9), input_bound=unsure))
    assert [one.expected_ratio for one in found if one.trial == bound.trial] == [0.375]
    little = msgspec.structs.replace(bound, best_per_s=103.0)
    tried = plan.candidates(msgspec.structs.replace(_report(input_wait=0.9), input_bound=little))
    assert bound.trial not in {one.trial for one in tried}
