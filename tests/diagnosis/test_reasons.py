"""What findings say of their lines, and which unexplained line is said first."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.derive import torch_jobs
from tests.derive.sessions import MS, SCRIPT, Frame, Job
from tests.detectors.jobs import CALL, PERIOD, REPORT, SOURCE, STEPS, called_back, sampled, train_loop

from stepscope.detectors.ranking import meet
from stepscope.diagnosis import analyze
from stepscope.report.brief import text
from stepscope.tables.findings import Finding
from stepscope.tables.place import Place
from stepscope.wire.kinds import Flag

SORT = Frame("/usr/lib/site-packages/numpy/_core/fromnumeric.py", "argsort", 9, own=False)


def loop(after: int, *below: Frame, source: str = SOURCE) -> Job:
    """A loop whose own line takes time after each call, with stacks in both."""
    job = train_loop(PERIOD - after)
    job.sources[SCRIPT] = source
    job.samples([i * PERIOD + 10 * MS for i in range(STEPS)], Frame(SCRIPT, "main", CALL), dur=PERIOD - after)
    for part in (4, 2):
        times = [(i + 1) * PERIOD - after // part for i in range(STEPS)]
        job.samples(times, Frame(SCRIPT, "main", REPORT), *below, dur=after // 2)
    return job


def torch(after: int, source: str = SOURCE) -> Job:
    """A loop of PyTorch, whose calls are not measured: each line may be its compute."""
    job = Job()
    job.sources[SCRIPT] = source
    job.framework("torch", "2.9.0")
    job.step().every(PERIOD, STEPS, dur=PERIOD)
    job.samples([i * PERIOD + 10 * MS for i in range(STEPS)], Frame(SCRIPT, "main", CALL), dur=PERIOD - after)
    job.samples([(i + 1) * PERIOD - 5 * MS for i in range(STEPS)], Frame(SCRIPT, "main", REPORT), dur=after)
    return job


def findings(job: Job) -> tuple[Finding, ...]:
    """The report's findings about the steps."""
    job.ended_ns = STEPS * PERIOD
    return tuple(f for f in analyze.report_of(job.session()).findings if f.code != "GEN013")


def test_a_finding_says_what_its_lines_do() -> None:
    """In words, in the short title, with advice for work of this kind; the shares are data."""
    job = loop(40 * MS, SORT)
    first = findings(job)[0]
    assert first.severity == "high"
    assert first.does is not None
    assert [(part.kind, part.entry) for part in first.does.parts] == [("sort", "argsort")]
    assert "a sort of whole arrays" in first.does.text
    assert first.remedies[0].id == "less-sort"
    job.ended_ns = STEPS * PERIOD
    assert "a sort of whole arrays, below argsort, train.py:45" in text.render(analyze.report_of(job.session()))


def test_a_callback_that_is_slow_is_explained_by_its_own_lines() -> None:
    """Not the line of fit, which leads to it."""
    mine = [one for one in findings(called_back(30 * MS)) if one.code == "HST004"]
    assert len(mine) == 1
    assert mine[0].does is None


@pytest.mark.parametrize(("hash_ms", "severity"), [(8, "info"), (12, "medium"), (40, "high")])
def test_a_line_that_nothing_explains_is_the_first_finding(hash_ms: int, severity: str) -> None:
    """From a tenth of the step on if nothing else is found, and what it does is known: at the level of its time."""
    source = SOURCE.replace("total = report(loss, total)", "total = hashlib.md5(total)")
    first = next(one for one in findings(torch(hash_ms * MS, source)) if one.where[:1] and one.does is not None)
    if severity != "info":
        assert (first.severity, first.cost.basis) == (severity, "modelled")
        assert first.cost.ratio == pytest.approx(hash_ms / 100, abs=0.02)
        assert first.remedies[0].id == "less-hash"
    else:
        assert first.severity == "info"


UFUNC = Frame("/usr/lib/site-packages/jax/_src/numpy/ufunc_api.py", "ufunc.__call__", 9, own=False)


@pytest.mark.parametrize("before", [0, 3_000])
def test_ops_of_jax_one_by_one_cost_what_they_compute_themselves(before: int) -> None:
    """Of 80 ms the thread waits 30 for what earlier calls compute. What the same line does before the steps, for
    ``before`` milliseconds of 13 s, is worth a word, and hides nothing.
    """
    job = Job()
    job.framework("jax", "0.10.2", at=2, dur=1)
    start = before * MS
    job.samples(range(10 * MS, start, 50 * MS), Frame(SCRIPT, "main", REPORT), UFUNC)
    job.step().every(PERIOD, STEPS, dur=PERIOD, start=start)
    for at, dur, flags in ((20, 50, Flag.CPU), (75, 30, 0)):
        times = [start + i * PERIOD + at * MS for i in range(STEPS)]
        job.samples(times, Frame(SCRIPT, "main", REPORT), UFUNC, dur=dur * MS, flags=flags)
    job.samples([start + i * PERIOD + 90 * MS for i in range(STEPS)], Frame(SCRIPT, "main", CALL), dur=20 * MS)
    job.ended_ns = start + STEPS * PERIOD
    first = analyze.report_of(job.session()).findings[0]
    assert (first.code, first.severity, first.where[0].line) == ("GEN012", "high", REPORT)
    assert first.remedies[0].id == "less-eager"
    assert first.cost.ratio == pytest.approx(0.5, abs=0.03)
    assert first.cost.high >= 0.8


def test_compute_that_is_not_measured_is_not_unexplained() -> None:
    """A line of PyTorch of which nothing shows that it is other work stays information, whatever it takes."""
    assert {one.severity for one in findings(torch(60 * MS))} <= {"info"}


PARAMETRIZE = Frame("/x/site-packages/torch/nn/utils/parametrize.py", "ParametrizationList.forward", 331, own=False)


UNROLLED = "class Net:\n    def forward(self, x):\n        for one in x:\n            h = self.cell(one, h)\n"
ONCE = "class Net:\n    def forward(self, x):\n\n        h = self.cell(x)\n"


@pytest.mark.parametrize(
    ("below", "source", "severity"),
    [
        (PARAMETRIZE, UNROLLED, "medium"),
        (PARAMETRIZE, ONCE, "info"),
        (torch_jobs.LINEAR, UNROLLED, "info"),
    ],
)
def test_of_the_forward_pass_only_a_known_kind_of_work_is_a_reason(below: Frame, source: str, severity: str) -> None:
    """Layers compute; weights that are computed again at each read need not be, but once a step they have to."""
    job = torch_jobs.training()
    net = "/job/net.py"
    job.sources[net] = source
    inner = Frame(net, "Net.forward", 4)
    torch_jobs.sampled(job, 2 * MS, torch_jobs.LOOP, torch_jobs.MODULE, inner, torch_jobs.MODULE, below, dur=20 * MS)
    torch_jobs.sampled(job, 3 * MS, torch_jobs.LOOP)
    (found,) = (
        one for one in analyze.report_of(job.session()).findings if one.evidence[0].refs == ("component:forward",)
    )
    assert found.severity == severity
    if severity != "info":
        assert found.remedies[0].id == "less-parametrize"
        assert found.cost.ratio == pytest.approx(0.2, abs=0.03)


def test_one_function_is_claimed_once() -> None:
    """What a specific finding explains is not said again by a general one."""
    above = [one for one in findings(sampled(after=30 * MS)) if one.severity not in {"info", "ask"}]
    assert len([one for one in above if one.where and one.where[0].line == 8]) == 1


def test_imports_do_not_take_the_place_of_a_scripts_line() -> None:
    """Both stand at the top of a script, which is no function: the loop's line is found all the same."""
    one = Place(file="train.py", line=4, function="<module>")
    two = Place(file="train.py", line=REPORT, function="<module>")
    made = findings(loop(40 * MS, SORT))[0]
    assert not meet(replace(made, where=(two,)), replace(made, where=(one,)))
    assert meet(replace(made, where=(two,)), replace(made, where=(two, one)))
