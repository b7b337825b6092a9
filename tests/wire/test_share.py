"""Which jobs are drawn."""

from __future__ import annotations

import os

import pytest

from stepscope.wire import share


@pytest.mark.parametrize("share_of", [0.05, 0.5])
def test_the_share_is_kept(share_of: float) -> None:
    """Of many jobs about this share is drawn; more are drawn by a larger share, and the same ones again."""
    ids = [f"SLURM_JOB_ID={number}" for number in range(20_000)]
    drawn = [identity for identity in ids if share.drawn(identity, share_of)]
    assert len(drawn) == pytest.approx(share_of * len(ids), rel=0.1)
    assert all(share.drawn(identity, 2 * share_of) for identity in drawn)
    assert all(share.drawn(identity, 1.0) for identity in ids)


def test_the_scheduler_names_the_job() -> None:
    """All processes of a scheduler's job have one id, whichever they are."""
    env = {"SLURM_JOB_ID": "17", "HOME": "/"}
    assert share.job_id(env, {1: 1}) == share.job_id(env, {2: 2}) == "SLURM_JOB_ID=17"


def test_without_one_the_oldest_of_the_same_python() -> None:
    """A process and its children agree, and what another program started does not count."""
    me = os.getpid()
    assert share.job_id({}, {me: 5, 1 << 30: 1}) == f"process {me}, started at 5"
