"""INP013 single-elements: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import US, Job, node
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.jobs import MAIN_CALL, STEPS, nothing

from stepscope.detectors.input.single_elements import DETECTOR

TURN = 100 * US


def taking(handed: int, *, made: int | None = None, after: tuple[str, ...] = ()) -> Job:
    """A loop of 100 us a turn that takes an element in this time; the pipeline makes one in another, if it is known.

    ``after``: what follows the records, each a class of tf.data.
    """
    job = Job()
    dataset = job.dataset("TFRecordDataset", line=70)
    for number, cls in enumerate(after):
        dataset = job.dataset(cls, dataset, line=71 + number, batch=32 if cls == "BatchDataset" else 0)
    iterator = job.iterator(dataset)
    job.function(**MAIN_CALL).every(TURN, STEPS, dur=TURN - handed, start=handed)
    job.nexts().every(TURN, STEPS, dur=handed, arg=iterator)
    if made is not None:
        for elements in (50, 90):
            records = node(1, "TFRecord", elements=elements, busy=elements * made)
            job.model(iterator, elements * TURN, [records])
    return job


FIXTURES = Fixtures(
    firing=lambda: taking(40 * US, made=5 * US),
    expected=Expected(
        severity="high",
        cost=0.4,
        where=(("train.py", 44), ("train.py", 70)),
        metrics=("handover_ratio", "handover_ns", "elements_per_s"),
        title=("one by one", "10,000 a second", "40 us each", "40 %"),
        introduced="data preparation",
        pipeline_stage="preprocessing",
        remedy="take-batches",
        per_step=40 * US,
    ),
    silent=lambda: taking(40 * US, made=30 * US),
    not_applicable=nothing,
    missing="steps",
    below=lambda: taking(24 * US),
    at=lambda: taking(25 * US),
    edges={
        "ready": Edge(below=lambda: taking(60 * US + 1), at=lambda: taking(60 * US)),
        "max_made_ratio": Edge(below=lambda: taking(40 * US, made=21 * US), at=lambda: taking(40 * US, made=19 * US)),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_a_pipeline_that_works_as_long_is_no_handover() -> None:
    """What the pipeline needs for an element is the pipeline's."""
    assert "INP013" not in codes(taking(60 * US, made=55 * US))


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (("MapDataset",), True),
        (("BatchDataset", "UnbatchDataset"), True),
        (("BatchDataset", "PrefetchDataset"), False),
        (("UnbatchDataset", "BatchDataset"), False),
    ],
)
def test_batches_are_not_single_elements(after: tuple[str, ...], *, told: bool) -> None:
    """A training of small batches hands over often too, but what it takes are batches already."""
    assert ("INP013" in codes(taking(40 * US, after=after))) is told
