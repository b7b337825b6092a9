"""The model of stacks: root to leaf, callers first, nothing that leads outside of its table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.tables.stacks import Frame, FrameKind, SampleTable, StackBuilder, StackProfile, StackTable, Thread

CHAINS = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=6), max_size=20)


def profile_of(chains: list[list[str]]) -> tuple[StackProfile, list[int]]:
    """A profile with one sample per chain, and the stack of each."""
    builder = StackBuilder()
    ids = [builder.stack_of([Frame(name) for name in chain]) for chain in chains]
    count = len(ids)
    samples = SampleTable(
        at_ns=np.arange(count),
        thread=np.zeros(count, np.int64),
        stack=np.array(ids, np.int64),
        weight=np.ones(count),
        count=np.ones(count, np.int64),
        flags=np.zeros(count, np.int64),
        op_thread=np.zeros(count, np.int64),
    )
    made = StackProfile(
        event="cpu",
        unit="samples",
        frames=builder.frames,
        stacks=builder.stacks,
        samples=samples,
        threads=(Thread(1, 1, "main"),),
    )
    return made, ids


@given(CHAINS)
def test_a_stack_is_read_as_it_was_given(chains: list[list[str]]) -> None:
    """Root to leaf, whatever other stacks it shares its callers with; equal chains are one stack."""
    profile, ids = profile_of(chains)
    assert [[f.function for f in profile.frames_of(i)] for i in ids] == chains
    assert len(set(ids)) == len({tuple(chain) for chain in chains})
    assert np.all(profile.stacks.parent < np.arange(len(profile.stacks)))
    assert profile.total == len(chains)


def test_no_frames_is_no_stack() -> None:
    """A sample without frames has stack -1, and an empty continuation is the stack itself."""
    builder = StackBuilder()
    assert builder.stack([]) == -1
    root = builder.stack_of([Frame("main")])
    assert builder.stack([], parent=root) == root
    assert StackProfile(event="cpu", unit="").frames_of(-1) == ()
    assert StackBuilder().stacks.parent.size == 0


def test_frames_differ_by_all_they_say() -> None:
    """The same function in two modules is two frames."""
    builder = StackBuilder()
    numbers = {
        builder.frame(frame)
        for frame in (Frame("f"), Frame("f", module="a.so"), Frame("f", line=2), Frame("f"), Frame("f", resolved=False))
    }
    assert len(numbers) == 4


@pytest.mark.parametrize(
    ("stacks", "row", "said"),
    [
        ((0, 0), (0, 0, 1.0), "caller"),
        ((-2, 0), (0, 0, 1.0), "caller"),
        ((-1, 1), (0, 0, 1.0), "frame"),
        ((-1, 0), (1, 0, 1.0), "stack"),
        ((-1, 0), (0, 1, 1.0), "thread"),
        ((-1, 0), (0, 0, float("nan")), "weights"),
        ((-1, 0), (0, 0, -1.0), "weights"),
    ],
)
def test_what_leads_nowhere_is_refused(stacks: tuple[int, int], row: tuple[int, int, float], said: str) -> None:
    """Profiles come from files of others: no index may lead outside of its table."""
    (parent, frame), (stack, thread, weight) = stacks, row
    one = np.ones(1, np.int64)
    samples = SampleTable(
        at_ns=one,
        thread=thread * one,
        stack=stack * one,
        weight=np.array([weight]),
        count=one,
        flags=one,
        op_thread=one,
    )
    with pytest.raises(ValueError, match=said):
        StackProfile(
            event="e",
            unit="",
            frames=(Frame("f"),),
            stacks=StackTable(parent=parent * one, frame=frame * one),
            samples=samples,
            threads=(Thread(),),
        )


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 3), st.integers(0, 2), st.integers(0, 5)), max_size=30))
def test_sums_keep_what_was_there(rows: list[tuple[int, int, int, int]]) -> None:
    """Rows of one thread, stack and flags become one, in the order of first appearance; nothing is lost."""
    thread, stack, flags, count = (np.array([row[i] for row in rows], np.int64) for i in range(4))
    size = len(rows)
    weight = np.arange(size, dtype=np.float64)
    table = SampleTable(
        at_ns=np.arange(size),
        thread=thread,
        stack=stack,
        weight=weight,
        count=count,
        flags=flags,
        op_thread=np.arange(size),
    ).summed()
    keys = list(zip(table.thread.tolist(), table.stack.tolist(), table.flags.tolist(), strict=True))
    assert keys == list(dict.fromkeys(row[:3] for row in rows))
    for key, total, counted in zip(keys, table.weight.tolist(), table.count.tolist(), strict=True):
        mine = [row[3] for row in rows if row[:3] == key]
        assert total == sum(i for i, row in enumerate(rows) if row[:3] == key)
        assert counted == (0 if 0 in mine else sum(mine))


def test_a_kind_of_a_newer_version_is_other() -> None:
    """Numbers of kinds are stored; one that is not known yet is no error."""
    assert FrameKind(99) is FrameKind.OTHER
