"""Static findings and those of a run: what becomes one, what gets a cost, and what stays info."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.derive.sessions import CWD, MS, SCRIPT, Frame, Job
from tests.detectors.jobs import CALL, MAKE, PERIOD, STEPS, train_loop
from tests.diagnosis.static.static_hits import MAIN, SLOW, hit, joined

from stepscope.causes.host.line_heat import HotLines
from stepscope.check.hits import FixPlan, FixSafety
from stepscope.diagnosis.static.join import join
from stepscope.diagnosis.static.static_check import StaticHit
from stepscope.tables.findings import Checked, Cost, Finding, Outcome, Remedy, Symptom
from stepscope.tables.place import Place


def plan(safety: FixSafety = "safe") -> FixPlan:
    """An edit."""
    return FixPlan(
        action="add-keyword",
        title="Add axis=0",
        safety=safety,
        behaviour="Results keep their order.",
        spans=(),
    )


def found(code: str = "HST001", *places: Place, ratio: float = 0.4) -> Finding:
    """A detector's finding."""
    return Finding(
        code=code,
        name="slow",
        title="make_batch takes 40 ms",
        severity="high",
        confidence=0.9,
        symptom="Time: slow execution time",
        cause="Python: interpreter overhead",
        introduced_stage="training",
        exposed_stage="training",
        pipeline_stage="preprocessing",
        where=places,
        cost=Cost(ratio=ratio, low=ratio, high=ratio),
        remedies=(Remedy(id="own", text="make it faster"),),
        explanation="It is Python.",
    )


def place(line: int, end: int | None = None, file: str = "train.py") -> Place:
    """A place as reports name it."""
    return Place(file=file, line=line, end_line=end, function="make_batch")


def hot(share: float = 0.4, line: int = SLOW) -> Job:
    """A loop whose steps spend this share on a line of ``make_batch``, the rest in ``main``."""
    job = train_loop(20 * MS)
    for dur, frames in ((share, (MAIN, Frame(SCRIPT, "make_batch", line))), (1 - share, (MAIN,))):
        job.samples([i * PERIOD + 50 * MS for i in range(STEPS)], *frames, dur=round(dur * 100) * MS)
    return job


def outcome(what: Outcome, hint: str = "") -> tuple[Checked, ...]:
    """What became of the rule's detector."""
    return (Checked(detector="HST001", name="slow", outcome=what, hint=hint),)


def test_the_related_detector_keeps_code_and_cost_and_gets_the_edit() -> None:
    """Two views of one place are one finding: the detector's, with the rule's edit after its own advice."""
    one = found("HST001", place(1, 9))
    result = joined(hot(), hit(fix=plan()), run=(one,))
    (finding,) = result.findings
    assert result.rest == ()
    assert (finding.code, finding.cost, finding.severity) == ("HST001", one.cost, "high")
    assert (finding.origin, finding.related_codes) == ("joined", ("VEC009",))
    own, edit = finding.remedies
    assert (own.text, own.rule, own.edit) == ("make it faster", "", None)
    assert (edit.id, edit.rule, edit.safety) == ("row-by-row", "VEC009", "safe")
    assert edit.text == "add axis=0 at train.py:4"
    assert edit.edit == "stepscope check --diff x"
    assert finding.where == one.where
    assert finding.explanation == (
        "It is Python. VEC009 finds it in the source: rows are read one by one. Results keep their order."
    )


def test_advice_without_an_edit_has_no_command() -> None:
    """A rule that only advises says what to do; nothing can show the edit."""
    (finding,) = joined(hot(), hit(), run=(found("HST001", place(1, 9)),)).findings
    assert [(r.text, r.edit) for r in finding.remedies] == [
        ("make it faster", None),
        ("work on all rows at once", None),
    ]


def test_another_pattern_on_the_same_statement_is_no_finding_of_its_own() -> None:
    """One line is one finding; advice that is about something else is left to the rule's page."""
    (finding,) = joined(hot(), hit(related=()), run=(found("HST004", place(SLOW)),)).findings
    assert (finding.origin, finding.related_codes, len(finding.remedies)) == ("joined", ("VEC009",), 1)
    (same,) = joined(
        hot(), hit(related=(), cause="Python: interpreter overhead"), run=(found("X", place(SLOW)),)
    ).findings
    assert [r.id for r in same.remedies] == ["own", "row-by-row"]


def test_a_hot_line_inside_of_a_function_that_was_found_is_part_of_it() -> None:
    """What the line costs is already in the function's cost: it is not told twice."""
    result = joined(hot(), hit(related=()), run=(found("HST004", place(1, 9)),))
    assert [f.origin for f in result.findings] == ["joined"]
    cold = joined(hot(line=3), hit(related=()), run=(found("HST004", place(1, 9)),))
    assert [f.origin for f in cold.findings] == ["run"]
    assert [f.seen for f in cold.rest] == [True]


@pytest.mark.parametrize("where", [place(20, 29), place(1, 9, "other.py")])
def test_places_that_do_not_meet_stay_apart(where: Place) -> None:
    """The detector's finding about another place is left as it is."""
    one = found("HST001", where, ratio=0.5)
    result = joined(hot(), hit(), run=(one,))
    assert result.findings[0] == one
    assert [f.code for f in result.findings] == ["HST001", "VEC009"]


def test_a_stage_of_a_chain_is_told_by_its_own_line() -> None:
    """Of a chain over many lines, the detector's line decides which stage is meant."""
    stages = [hit(32, related=("INP001",)), hit(34, related=("INP001",))]
    job = train_loop(20 * MS)
    result = joined(job, *stages, run=(found("INP001", place(34)),))
    assert result.findings[0].related_codes == ("VEC009",)
    assert [f.where[0].line for f in result.rest] == [32]


def test_a_detector_without_a_place_gets_the_rules() -> None:
    """Where the pattern stands in one place only, that is where; of two nobody knows."""
    one = found("HST001")
    job = hot(line=SLOW)
    (finding,) = joined(job, hit(7), run=(one,)).findings
    assert finding.where[0].line == 7
    assert finding.origin == "joined"
    two = joined(job, hit(7), hit(8), run=(one,))
    assert (two.findings, len(two.rest)) == ((one,), 2)
    unseen = joined(job, hit(7, function="never_called"), run=(one,))
    assert unseen.findings == (one,)


FIT = """\
def train(x):
    saver = ModelCheckpoint("x", save_freq=4)
    other = EarlyStopping()
    callbacks = [saver]
    model.fit(x, callbacks=callbacks)
    model.evaluate(x, callbacks=[other])
"""


@pytest.mark.parametrize(
    ("at", "fitted", "related", "origin"),
    [(2, 5, ("HST006",), "joined"), (3, 5, ("HST006",), "run"), (2, 6, ("HST006",), "run"), (2, 5, (), "run")],
)
def test_what_a_keras_loop_was_given(at: int, fitted: int, related: tuple[str, ...], origin: str) -> None:
    """What happened inside of fit belongs to the callback that it was given, where one line made it."""
    job = train_loop(20 * MS)
    job.sources[SCRIPT] = FIT
    job.loop("fit", line=fitted).at(0, STEPS * PERIOD)
    job.samples([50 * MS], Frame(SCRIPT, "train", 5))
    found_there = found("HST006", place(fitted))
    (finding,) = joined(job, hit(at, function="train", related=related), run=(found_there,)).findings
    assert finding.origin == origin
    assert [p.line for p in finding.where] == ([fitted, at] if origin == "joined" else [fitted])
    two = joined(job, *(hit(n, function="train", related=related) for n in (at, at + 10)), run=(found_there,))
    assert two.findings == (found_there,)


def test_a_hot_line_is_a_finding_with_its_measured_cost() -> None:
    """Cost is the measured share times what the pattern's fix removes, and never more than the share."""
    result = joined(hot(0.4), hit(fix=plan("unsafe")))
    (finding,) = result.findings
    assert (finding.origin, finding.seen, finding.cost.basis) == ("static", True, "modelled")
    assert finding.cost.ratio == pytest.approx(0.4 * 0.9, abs=0.005)
    assert finding.cost.low < finding.cost.ratio < finding.cost.high <= 0.4
    assert finding.cost.ns_per_step == pytest.approx(36 * MS, rel=0.02)
    assert finding.severity == "high"
    assert finding.title == "rows are read one by one; this line takes 40 % of the time"
    assert finding.where[0].file == "train.py"
    assert [e.metric for e in finding.evidence] == ["line_ratio", "line_samples", "pattern_speedup"]
    assert (finding.remedies[0].text, finding.remedies[0].rule) == ("add axis=0 at train.py:4", "VEC009")
    assert finding.related_codes == ("HST001",)


@pytest.mark.parametrize(
    ("share", "severity"), [(0.4, "high"), (0.2, "medium"), (0.09, "low"), (0.05, "info"), (0.02, "info")]
)
def test_severity_follows_from_cost(share: float, severity: str) -> None:
    """25, 10 and 3 percent; what samples cannot tell from less than 3 % is info."""
    result = joined(hot(share), hit())
    assert [f.severity for f in (*result.findings, *result.rest)] == [severity]


def test_what_a_detector_has_cleared_costs_nothing() -> None:
    """The detector of the pattern looked and found nothing: the line may be hot for other reasons."""
    result = joined(hot(0.4), hit(), checked=outcome("clear"))
    assert result.findings == ()
    (finding,) = result.rest
    assert (finding.severity, finding.seen, finding.cost.ratio) == ("info", True, 0)
    assert "HST001 checked for it in this run and found nothing" in finding.explanation


@pytest.mark.parametrize(
    "checked", [(), outcome("undecided"), outcome("not-applicable"), outcome("failed"), outcome("clear", "as HST002")]
)
def test_a_detector_that_could_not_look_clears_nothing(checked: tuple[Checked, ...]) -> None:
    """Not looking is no verdict, nor is a finding that was told by another detector."""
    assert [f.code for f in joined(hot(0.4), hit(), checked=checked).findings] == ["VEC009"]


def test_one_detector_that_found_something_keeps_the_question_open() -> None:
    """Of two detectors of a pattern one is clear and the other found it elsewhere: nothing is refuted."""
    outcomes = (*outcome("clear"), Checked(detector="TRD001", name="rising", outcome="found"))
    assert [f.code for f in joined(hot(0.4), hit(related=("HST001", "TRD001")), checked=outcomes).findings] == [
        "VEC009"
    ]


@pytest.mark.parametrize("symptom", ["Memory: out of memory", "Time: slow initialization time"])
def test_the_time_of_steps_says_nothing_about_memory_or_starting(symptom: Symptom) -> None:
    """Such a pattern on a hot line stays info."""
    result = joined(hot(0.9), hit(symptom=symptom))
    assert (result.findings, len(result.rest)) == ((), 1)


def test_a_rule_that_is_not_sure_needs_more_time() -> None:
    """A rule of severity info does not know whether its line runs often; a tenth of the time shows that it does."""
    assert joined(hot(0.09), hit()).findings
    result = joined(hot(0.09), hit(severity="info"))
    assert (result.findings, [f.severity for f in result.rest]) == ((), ["info"])
    assert [f.severity for f in joined(hot(0.4), hit(severity="info")).findings] == ["high"]


def test_a_rule_without_a_pay_off_is_never_above_info() -> None:
    """However hot its line, if its fix removed nothing where it was measured."""
    result = joined(hot(0.9), hit(severity="info", speedup=1.0))
    assert (result.findings, [f.severity for f in result.rest]) == ((), ["info"])


def test_lines_that_were_not_seen_are_info() -> None:
    """Nothing above info comes from the source alone."""
    result = joined(hot(0.4), hit(90, function="unused"), hit(SLOW, path=f"{CWD}/lib.py", severity="error"))
    assert result.findings == ()
    assert [(f.severity, f.seen, f.cost.ratio) for f in result.rest] == [("info", False, 0.0)] * 2
    assert {f.where[0].file for f in result.rest} == {"train.py", "lib.py"}


def test_a_compiled_call_is_no_cost_of_its_line() -> None:
    """The line of a clean step is on the stack all the time: that is the work that it asks for."""
    job = train_loop(90 * MS)
    compiled = Frame("/x/site-packages/tensorflow/python/eager/polymorphic_function/f.py", "__call__", 1, own=False)
    job.samples([i * PERIOD + 50 * MS for i in range(STEPS)], MAIN._replace(line=CALL), compiled, dur=90 * MS)
    result = joined(job, hit(CALL, function="main", severity="error", related=()))
    assert (result.findings, [f.seen for f in result.rest]) == ((), [True])


def test_waiting_counts_for_rules_about_the_input_only() -> None:
    """The head of a loop that waits for its batches is hot for a rule about the input, and for no other."""
    job = train_loop(20 * MS)
    job.nexts().every(PERIOD, STEPS, dur=70 * MS, start=25 * MS, arg=1)
    job.samples([i * PERIOD + 50 * MS for i in range(STEPS)], MAIN, dur=70 * MS)
    assert joined(job, hit(MAKE, related=())).findings == ()
    (finding,) = joined(job, hit(MAKE, related=(), pipeline_stage="preprocessing")).findings
    assert finding.severity == "high"


def test_two_patterns_on_one_line_pay_once() -> None:
    """The costlier one speaks for the other."""
    result = joined(hot(0.4), hit(code="VEC001", speedup=2.0), hit(), hit(3, end=5, code="VEC002", speedup=3.0))
    (finding,) = result.findings
    assert (finding.code, finding.related_codes) == ("VEC009", ("HST001", "VEC002", "VEC001"))
    assert len(finding.remedies) == 3
    assert result.rest == ()


def test_findings_are_ranked_by_cost() -> None:
    """A static finding takes its place among the detectors'."""
    result = joined(hot(0.4), hit(), run=(found("A", place(50), ratio=0.5), found("B", place(60), ratio=0.1)))
    assert [f.code for f in result.findings] == ["A", "VEC009", "B"]


def test_unknown_words_are_filled_from_the_rule() -> None:
    """A detector that does not know who brought the time in learns it from the source."""
    one = replace(found("HST001", place(1, 9)), introduced_stage="unknown", cause="unknown", symptom="unknown")
    (finding,) = joined(hot(), hit(), run=(one,)).findings
    assert (finding.introduced_stage, finding.cause) == ("data preparation", "API: not using batch API")
    assert finding.symptom == "Time: slow execution time"


LINES = st.integers(min_value=1, max_value=12)
HITS = st.lists(
    st.builds(
        lambda line, length, severity, related: hit(line, end=line + length, severity=severity, related=related),
        LINES,
        st.integers(min_value=0, max_value=3),
        st.sampled_from(("error", "warning", "info")),
        st.sampled_from(((), ("HST001",), ("INP001",))),
    ),
    max_size=6,
)
RUN = st.lists(
    st.builds(
        lambda code, line, length: found(code, place(line, line + length)),
        st.sampled_from(("HST001", "INP001", "X")),
        LINES,
        st.integers(min_value=0, max_value=8),
    ),
    max_size=3,
)
JOB = hot(0.3)


@given(HITS, RUN)
def test_nothing_is_lost_and_nothing_is_invented(static: list[StaticHit], run: list[Finding]) -> None:
    """What detectors measured stays; a static finding has a cost only where its lines have one, and at most that."""
    view = JOB.view()
    lines = HotLines(view)
    result = join(view, run, (), static, lines)
    measured = [f for f in result.findings if f.origin != "static"]
    assert sorted((f.code, f.cost.ratio, f.severity) for f in measured) == sorted(
        (f.code, f.cost.ratio, f.severity) for f in run
    )
    for finding in result.findings:
        if finding.origin == "static":
            where = finding.where[0]
            heat = lines.heat(SCRIPT, where.line, where.end_line or where.line)
            assert 0.03 <= finding.cost.ratio <= finding.cost.high <= heat.ratio
    assert all(f.severity == "info" and f.cost.ratio == 0 for f in result.rest)
    told = len(result.rest) + sum(f.origin == "static" for f in result.findings)
    assert told <= len(static)
    assert told == len(static) or any(f.related_codes for f in result.findings)
    ratios = [f.cost.ratio for f in result.findings]
    assert ratios == sorted(ratios, reverse=True)


def test_a_place_in_a_loop_is_that_of_a_hit_at_its_head() -> None:
    """A rule points at the head of the loop, a detector at the line of its body that takes the time."""
    job = hot(0.4)
    job.sources[SCRIPT] = "def make_batch(rows):\n    for row in rows:\n        pass\n        use(row)\n"
    (finding,) = joined(job, hit(2, related=("HST002",)), run=(found("HST002", place(4)),)).findings
    assert (finding.code, finding.origin, finding.related_codes) == ("HST002", "joined", ("VEC009",))


@pytest.mark.parametrize(("parts", "seen"), [((SLOW - 1, SLOW + 1), True), ((SLOW + 1,), False), ((), False)])
def test_a_pattern_of_several_places_is_what_lies_between_them(parts: tuple[int, ...], seen: bool) -> None:
    """A picture is decoded in one line and shrunk in another: the conversion between them may take the time."""
    one = hit(SLOW - 2, related=())
    span = one.hit.span
    also = tuple(msgspec.structs.replace(span, line=line, end_line=line) for line in parts)
    result = joined(hot(0.4), msgspec.structs.replace(one, hit=msgspec.structs.replace(one.hit, also=also)))
    assert [f.title for f in result.findings] == ["rows are read one by one; this takes 40 % of the time"] * seen
