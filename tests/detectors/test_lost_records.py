"""Over a time of which records were lost, no detector says that it is clear."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.derive.sessions import MS, Job
from tests.derive.stored import stored
from tests.detectors.jobs import keras_fit, pulled, train_loop

from stepscope.derive.view import SessionView
from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.model.session.session import Session
from stepscope.store import gaps, losses
from stepscope.store.segments import Segment

JOBS = {"loop": train_loop(20 * MS), "fit": keras_fit(20 * MS), "pulled": pulled(60 * MS)}


def without(job: Job, gone: set[int], known: int = 0) -> Session:
    """The session of a job of which these records were lost, as it is read; ``known``: as the collector counted."""
    session = job.session()
    (worker,) = session.workers
    table = stored(worker)
    table = replace(table, seq=table.seq + 1)
    kept = table.take(np.isin(table.seq - 1, list(gone), invert=True))
    segments = [Segment(first=0, last=len(table) - 1, name="records")]
    records, detached, in_gaps = gaps.read(kept)
    lost = losses.build(kept, segments, (0, session.manifest.ended_ns), known)
    return replace(session, workers=(replace(worker, records=records, gaps=detached, in_gaps=in_gaps, lost=lost),))


@pytest.mark.parametrize("name", JOBS)
@given(st.data())
def test_no_detector_is_clear_over_a_loss(name: str, data: st.DataObject) -> None:
    """Whichever records of a job are missing, no outcome is clear; what is undecided says when they were lost."""
    count = len(stored(JOBS[name].worker()))
    gone = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=count // 2))
    _, checked, _ = run(ALL, SessionView(without(JOBS[name], gone)))
    assert "clear" not in {one.outcome for one in checked}
    assert any(" lost between " in one.hint for one in checked if one.outcome == "undecided")


@pytest.mark.parametrize("name", JOBS)
def test_without_a_loss_they_are(name: str) -> None:
    """The same jobs, whole: most detectors that can look are clear."""
    _, checked, _ = run(ALL, SessionView(without(JOBS[name], set())))
    assert sum(one.outcome == "clear" for one in checked) > 3


@pytest.mark.parametrize("known", [1, 1_000_000])
def test_losses_without_a_place_count_too(known: int) -> None:
    """What only the collector knows of may be the end of the job."""
    _, checked, _ = run(ALL, SessionView(without(JOBS["loop"], set(), known)))
    assert "clear" not in {one.outcome for one in checked}


def test_damaged_files_count_too() -> None:
    """A session of which a file cannot be read is not clear either."""
    session = replace(without(JOBS["loop"], set()), lost_files=("tables/host-0-0.parquet",))
    _, checked, _ = run(ALL, SessionView(session))
    assert "clear" not in {one.outcome for one in checked}


def test_a_step_over_a_loss_is_no_figure() -> None:
    """The call that began a step is lost: the step before it looks twice as long, and is left out of the steady
    ones.
    """
    whole = SessionView(without(JOBS["loop"], set())).steps
    assert whole is not None
    table = stored(JOBS["loop"].worker())
    lost_start = int(whole.starts[whole.steady][10])
    gone = set(np.flatnonzero((table.start_ns >= lost_start) & (table.start_ns < lost_start + 1)).tolist())
    steps = SessionView(without(JOBS["loop"], gone)).steps
    assert steps is not None
    assert len(steps) == len(whole) - len(gone & set(np.flatnonzero(np.isin(table.start_ns, whole.starts)).tolist()))
    assert steps.durations[steps.steady].max() == whole.durations[whole.steady].max()
    assert steps.durations.max() > whole.durations[whole.steady].max()
