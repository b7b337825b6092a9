"""Stack profiles made of text: ``"main;train;matmul": weight``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from stepscope.readers.stacks import folded
from stepscope.tables.stacks import Frame, SampleTable, StackBuilder, StackProfile, Thread


def of_text(stacks: Mapping[str, float], *, unit: str = "", event: str = "cpu") -> StackProfile:
    """A profile as folded stacks give it: no times, no threads, counts unknown."""
    text = "".join(f"{stack} {weight}\n" for stack, weight in stacks.items())
    return replace(folded.read(text.encode(), where="test"), event=event, unit=unit)


def of_samples(
    samples: Sequence[tuple[int, Sequence[Frame]]],
    *,
    threads: Sequence[int] = (),
    flags: Sequence[int] = (),
    op_threads: Sequence[int] = (),
) -> StackProfile:
    """A profile of single samples: (time, frames root to leaf), each of weight 1 and of thread 0 or as said."""
    builder = StackBuilder()
    size = len(samples)
    stacks = [builder.stack_of(frames) for _, frames in samples]
    owners = np.array(threads or [0] * size, np.int64)
    return StackProfile(
        event="cpu",
        unit="samples",
        frames=builder.frames,
        stacks=builder.stacks,
        samples=SampleTable(
            at_ns=np.array([at for at, _ in samples], np.int64),
            thread=owners,
            stack=np.array(stacks, np.int64),
            weight=np.ones(size),
            count=np.ones(size, np.int64),
            flags=np.array(flags or [0] * size, np.int64),
            op_thread=np.array(op_threads or [0] * size, np.int64),
        ),
        threads=tuple(Thread(7, 7 + i, f"t{i}") for i in range(int(owners.max()) + 1 if size else 0)),
    )


def lines_of(profile: StackProfile) -> dict[str, float]:
    """What a profile says, as folded stacks."""
    lines = (line.rpartition(" ") for line in folded.write(profile).decode().splitlines())
    return {stack: float(weight) for stack, _, weight in lines}
