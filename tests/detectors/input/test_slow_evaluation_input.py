"""INP011 slow-evaluation-input: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import PERIOD, SOURCE, STEPS, TF, nothing, validating

from stepscope.detectors.input.slow_evaluation_input import DETECTOR

BATCHES = 2
OWN = {"fn_name": "decode", "fn_file": SCRIPT, "fn_line": 15, "fn_end_line": 18}


def job(
    dur: int,
    *,
    cached: bool = False,
    taken: bool = False,
    kept: int = 0,
    function: bool = True,
    leaf: str = "quick_execute",
) -> Job:
    """A fit whose steps take 10 ms and that validates two batches, in ``dur``, after every second step.

    ``cached``: a cache behind the map; ``taken``: ``take`` behind that; ``kept``: a filter that leaves so many of a
    thousand elements; ``leaf``: where the samples of evaluations stand.
    """
    made = validating(dur)
    made.sources[SCRIPT] = SOURCE
    source = made.dataset("TensorSliceDataset", line=70, cardinality=1_000)
    last = made.dataset("ParallelMapDataset", source, line=71, cardinality=1_000, **(OWN if function else {}))
    if kept:
        last = made.dataset("FilterDataset", last, line=72)
    if cached:
        last = made.dataset("CacheDataset", last, line=73, cardinality=1_000)
    count = BATCHES + 4 if taken else BATCHES
    last = made.dataset("BatchDataset", last, line=74, batch=64, cardinality=count)
    if taken:
        last = made.dataset("TakeDataset", last, line=75, cardinality=BATCHES)
    for at in range(2 * PERIOD, STEPS * PERIOD, 2 * PERIOD):
        made.iterator(last, batch=kept // BATCHES or 64, at=at + 13 * MS)
        made.samples([at + 20 * MS], Frame(SCRIPT, "main", 50), Frame(f"{TF}/eager/execute.py", leaf, 1, own=False))
    return made


FIXTURES = Fixtures(
    firing=lambda: job(80 * MS),
    expected=Expected(
        severity="high",
        cost=0.4 * (1 - 20 / 80),
        basis="modelled",
        where=(("train.py", 71), ("train.py", 15)),
        metrics=("evaluation_ratio", "waiting_ratio", "computing_ratio", "kept_ratio", "evaluations"),
        title=("evaluations take 40 %", "75 %", "in every evaluation, without a cache"),
        introduced="data preparation",
        exposed="evaluation",
        pipeline_stage="preprocessing",
        remedy="cache-evaluation-input",
    ),
    silent=lambda: job(80 * MS, cached=True),
    not_applicable=nothing,
    missing="steps",
    below=lambda: job(29 * MS),
    at=lambda: job(31 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


@pytest.mark.parametrize(
    ("made", "remedy", "first_line"),
    [
        (job(80 * MS, cached=True, taken=True), "take-first", 75),
        (job(80 * MS, kept=250), "drop-first", 72),
    ],
    ids=["cut-cache", "filter-behind-the-map"],
)
def test_the_remedy_follows_the_pipeline(made: Job, remedy: str, first_line: int) -> None:
    """A cache that take() cuts short is to stand behind it; what is dropped is to be dropped before the work."""
    (found,), _ = look(DETECTOR, made)
    assert (found.remedies[0].id, found.where[0].line) == (remedy, first_line)


@pytest.mark.parametrize(
    "made",
    [job(80 * MS, function=False), job(80 * MS, leaf="on_epoch_end")],
    ids=["no-function", "python-takes-the-time"],
)
def test_what_is_no_input_wait(made: Job) -> None:
    """Datasets without work, and evaluations whose thread runs Python, are not reported."""
    assert look(DETECTOR, made)[0] == ()
