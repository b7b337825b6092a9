"""Stack profiles in a session: written, read back, and damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepscope.store import open_session, stacks, tables
from stepscope.tables.findings import Diagnostic
from stepscope.tables.stacks import Frame, FrameKind, SampleTable, StackBuilder, StackFlag, StackProfile, Thread


def sampled() -> StackProfile:
    """Two samples of two threads, one of them without frames."""
    builder = StackBuilder()
    builder.stack_of([Frame("main"), Frame("step", "/x/train.py", 41, kind=FrameKind.PYTHON)])
    leaf = builder.stack_of([Frame("main"), Frame("[libz.so.1]", module="/lib/libz.so.1", resolved=False)])
    samples = SampleTable(
        at_ns=np.array([5, 9]),
        thread=np.array([0, 1]),
        stack=np.array([leaf, -1]),
        weight=np.array([1e7, 0.5]),
        count=np.array([1, 3]),
        flags=np.array([StackFlag.WHOLE | StackFlag.APPROXIMATE, 0]),
        op_thread=np.array([0x7F0000001000, 0]),
    )
    return StackProfile(
        event="cpu-clock",
        unit="ns",
        name="second window",
        begin_ns=1,
        end_ns=20,
        frames=builder.frames,
        stacks=builder.stacks,
        samples=samples,
        threads=(Thread(7, 7, "python"), Thread(7, 8, "tf_Compute")),
        lost=2,
        diagnostics=(Diagnostic(code="DX106", text="something"),),
    )


def same(one: StackProfile, other: StackProfile) -> bool:
    """Whether two profiles say the same."""
    for field in StackProfile.__struct_fields__:
        left, right = getattr(one, field), getattr(other, field)
        if field in {"stacks", "samples"}:
            if any(not np.array_equal(getattr(left, name), getattr(right, name)) for name in left.__struct_fields__):
                return False
        elif left != right:
            return False
    return True


def test_round_trip(made: Path) -> None:
    """What was stored in a session is what the session has."""
    stacks.write(made, "cpu-0002", sampled())
    (read,) = open_session(made).stacks
    assert same(read, sampled())
    assert isinstance(read.frames[1].kind, FrameKind)


def test_empty_round_trip() -> None:
    """A window in which nothing was sampled."""
    assert same(stacks.decode(stacks.encode(StackProfile(event="e", unit="ns"))), StackProfile(event="e", unit="ns"))


def test_damage_costs_the_file_not_the_session(made: Path) -> None:
    """A damaged profile is left out, with a diagnostic that names it; the others are read."""
    stacks.write(made, "good", sampled())
    cut = stacks.write(made, "bad", sampled())
    cut.write_bytes(cut.read_bytes()[:-40])
    session = open_session(made)
    assert len(session.stacks) == 1
    assert any("captures/stacks/bad.parquet" in d.text for d in session.manifest.diagnostics)


@pytest.mark.parametrize("metadata", ["", "!!", "eJw=", "bm90IHpsaWI="])
def test_damaged_metadata(metadata: str) -> None:
    """A Parquet file that is no stack profile is refused by name."""
    with pytest.raises(ValueError, match="profile"):
        stacks.decode(tables.encode({"at_ns": np.zeros(1, np.int64)}, {"profile": metadata}))


def test_wrong_columns() -> None:
    """A column that is missing or of another type is named."""
    good = tables.columns_of(sampled().samples)
    metadata = tables.read_columns(stacks.encode(sampled()))[1]
    with pytest.raises(ValueError, match="weight is int64"):
        stacks.decode(tables.encode({**good, "weight": np.zeros(2, np.int64)}, metadata))
    with pytest.raises(ValueError, match="flags is missing"):
        stacks.decode(tables.encode({k: v for k, v in good.items() if k != "flags"}, metadata))


def test_windows_of_before_know_no_op_threads() -> None:
    """A column that came later: nothing is known where it is missing."""
    columns = tables.columns_of(sampled().samples)
    del columns["op_thread"]
    metadata = tables.read_columns(stacks.encode(sampled()))[1]
    assert stacks.decode(tables.encode(columns, metadata)).samples.op_thread.tolist() == [0, 0]
