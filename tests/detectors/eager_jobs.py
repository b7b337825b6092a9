"""Hand-written sessions of looks at eager code, and of sessions whose fetches are new."""

from __future__ import annotations

from tests.derive.sessions import MAIN, MS, SCRIPT, Call, Job
from tests.detectors.jobs import CALL, PERIOD, STEPS, TIDY

from stepscope.model.log.eager import EagerOp, EagerOps
from stepscope.wire.kinds import Flag, Kind

LOOK = 10 * PERIOD
HALF = LOOK // 2


def looked_at(*rows: EagerOp, late_again: int = 0, fresh: int = 50, thread: int = MAIN, at: int = 20 * PERIOD) -> Job:
    """Calls of a Keras model op by op, 98 ms of each 100, and one look of ten steps at their ops.

    Args:
        rows: what the look saw.
        late_again: time of known results in its second half.
        fresh: ops of a hundred in that half that gave something new.
        thread: that it looked at.
        at: when it began.
    """
    job = Job()
    job.call(Kind.MODEL_CALL, "Functional", call_file=SCRIPT, call_line=CALL).every(PERIOD, STEPS, dur=98 * MS)
    times = {"ns": sum(row.ns for row in rows), "again_ns": sum(row.again_ns for row in rows)}
    late = {"late": 100, "fresh": fresh, "late_ns": HALF, "late_again_ns": late_again}
    job.event(EagerOps(at=at, dur=LOOK + MS, own=MS, thread=thread, ops=200, rows=rows, **times, **late))
    return job


def again(late: int, *, fresh: int = 50, thread: int = MAIN, at: int = 20 * PERIOD, drawn: bool = False) -> Job:
    """An encoder gives what it gave before; ``late``: the time of that in the look's second half of 500 ms.

    ``drawn``: another op of the same layer draws random numbers.
    """
    rows = (
        _row("Conv2D", "net/encoder/conv", 600 * MS, 500 * MS),
        _row("Relu", "net/encoder/conv" if drawn else "net/encoder/relu", 230 * MS, 0 if drawn else 200 * MS),
        _row("MatMul", "net/head/dense", 90 * MS, 0),
    )
    return looked_at(*rows, late_again=late, fresh=fresh, thread=thread, at=at)


def _row(op: str, scope: str, ns: int, known: int) -> EagerOp:
    return EagerOp(
        op=op, scope=scope, file=SCRIPT, line=TIDY, function="passes",
        count=20, ns=ns, again=18 if known else 0, again_ns=known,
    )  # fmt: skip


def copied(ns: int, *, op: str = "ReadVariableOp", part: int = 8) -> Job:
    """A large thing is copied for a small part of it, ``ns`` of the look's second in all."""
    row = EagerOp(
        op=op, file=SCRIPT, line=TIDY, function="sample", count=10, ns=ns, bytes=100 << 20,
        part=part, part_ns=ns, part_bytes=1 << 20,
    )  # fmt: skip
    return looked_at(row)


def refetching(dur: int, *, first: int = STEPS, known: int = 0, samples: int = 64, training: bool = True) -> Job:
    """A training run of 2 ms in each step, and one of ``dur`` that scores.

    Args:
        dur: of the scoring runs that are the first of their fetches.
        first: how many of them are, from the last step backwards; the others take 2 ms.
        known: steps with a further run of the scoring line, of known fetches.
        samples: fed to the training.
        training: whether there is one; if not, each scoring run has a name that occurs once.
    """
    job = Job()
    train = job.call(Kind.SESSION_RUN, "train", call_file=SCRIPT, call_line=CALL, call_function="main")
    train.every(PERIOD, STEPS if training else 0, dur=2 * MS, arg=samples)

    def scoring(text: str) -> Call:
        return job.call(Kind.SESSION_RUN, text, call_file=SCRIPT, call_line=TIDY, call_function="score")

    score = scoring("head_1, head_2, ... (20)")
    for i in range(STEPS):
        new = i >= STEPS - first
        score = score if training else scoring(f"head_{i}")
        score.at(i * PERIOD + 10 * MS, dur if new else 2 * MS, arg=64, flags=Flag.FIRST if new else 0)
        if i < known:
            score.at(i * PERIOD + 90 * MS, 2 * MS, arg=64)
    return job
