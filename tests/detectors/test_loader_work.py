"""Where a batch's time goes, by the samples under PyTorch's fetch: the place and the remedies of INP015 follow them."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame
from tests.detectors.data_loader_jobs import STEP, torch_job
from tests.detectors.fixture import look

from stepscope.derive.input import loader_samples
from stepscope.detectors.input.data_loader_wait import DETECTOR
from stepscope.model.session.session import HostInfo

FETCH = (
    Frame(SCRIPT, "main", 30),
    Frame("/x/site-packages/torch/utils/data/dataloader.py", "_BaseDataLoaderIter.__next__", 1, own=False),
    Frame(f"/x/site-packages{loader_samples.FETCH}", "_MapDatasetFetcher.fetch", 57, own=False),
)
ROW, READ = Frame(SCRIPT, "Set.__getitem__", 13), Frame("/job/files.py", "read", 4)
COLLATE, ENCODE = Frame(SCRIPT, "Pad.__call__", 21), Frame("/job/text.py", "Coder.encode", 9)
STACK = Frame("/x/site-packages/torch/utils/data/_utils/collate.py", "default_collate", 1, own=False)
TENTHS = [STEP * step + ms * MS for step in range(2, 20) for ms in range(3, 60, 6)]
"""Ten moments in the ``next`` of each of some steps."""


@pytest.mark.parametrize(
    ("stacks", "places", "doer"),
    [
        ({ROW: 10}, [("train.py", 13), ("train.py", 30)], "Set.__getitem__"),
        ({(ROW, READ): 7, ROW: 3}, [("files.py", 4), ("train.py", 13), ("train.py", 30)], "read"),
        ({(COLLATE, ENCODE): 6, ROW: 4}, [("text.py", 9), ("train.py", 21), ("train.py", 30)], "Coder.encode"),
        ({(COLLATE, ENCODE): 4, COLLATE: 4, ROW: 2}, [("train.py", 21), ("train.py", 30)], "Pad.__call__"),
        ({COLLATE: 6, (COLLATE, ENCODE): 1, ROW: 3}, [("train.py", 21), ("train.py", 30)], "Pad.__call__"),
        ({ROW: 3, STACK: 7}, [("train.py", 12), ("train.py", 30)], "Set.__getitem__"),  # most is not the user's code
        ({ROW: 4, COLLATE: 3, STACK: 3}, [("train.py", 12), ("train.py", 30)], "Set.__getitem__"),
    ],
)
def test_the_place_is_where_the_samples_under_the_fetch_are(
    stacks: dict[Frame | tuple[Frame, ...], int], places: list[tuple[str, int]], doer: str
) -> None:
    """The function that has most of a batch's time: the dataset's method, the collate function, or what they call."""
    job, first = torch_job(60 * MS), 0
    for frames, count in stacks.items():
        below = (frames,) if isinstance(frames, Frame) else frames
        job.samples([at for n, at in enumerate(TENTHS) if first <= n % 10 < first + count], *FETCH, *below)
        first += count
    (found,) = look(DETECTOR, job)[0]
    assert [(place.file, place.line) for place in found.where] == places
    assert f"{doer}: decode less" in found.remedies[-1].text


def test_rows_are_not_cheap_where_the_collate_function_takes_the_time() -> None:
    """Whole batches from the dataset make no collate function cheaper."""
    job = torch_job(59_900_000, batch=1200)
    job.samples(TENTHS, *FETCH, COLLATE)
    (found,) = look(DETECTOR, job)[0]
    assert "batched-rows" not in [one.id for one in found.remedies]


def test_samples_outside_of_this_loaders_next_say_nothing_of_it() -> None:
    """Another loader's batches are made under the same code."""
    job = torch_job(60 * MS)
    job.samples([STEP * step + 70 * MS for step in range(2, 90)], *FETCH, COLLATE)
    (found,) = look(DETECTOR, job)[0]
    assert found.where[0].line == 12


@pytest.mark.parametrize(("cpus", "low"), [(1, 0.0), (2, 0.4), (3, 0.6), (8, 0.6), (0, 0.4)])
def test_what_is_saved_at_least_depends_on_the_cpus(cpus: int, low: float) -> None:
    """One CPU makes no batch beside the step; a second one as fast as before; where they are not known, it is one."""
    job = torch_job(60 * MS)
    job.host = HostInfo(cpus=cpus)
    (found,) = look(DETECTOR, job)[0]
    assert found.cost.low == pytest.approx(low, abs=0.01)
