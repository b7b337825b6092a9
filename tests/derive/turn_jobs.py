"""Jobs with turns: repetitions that hold many steps each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.derive.sessions import MS, SCRIPT, Frame, Job, S

from stepscope.model.log.events import ProcessEnded
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Container

LOOP = """
def main():
    for prompt in prompts:
        ids = tokenize(prompt)
        for token in ids:
            step(token)
            if token % 50 == 0:
                draw(token)
        out.append(ids)
"""
OUTER, TOKENIZE, STEP, DRAW = 3, 4, 6, 8
STEPS = 100
STEP_NS = 10 * MS
PAUSE_NS = 500 * MS


def started(source: str = LOOP) -> Job:
    """A job of which TensorFlow is imported for a second."""
    job = Job()
    job.framework(at=S, dur=S)
    job.sources[SCRIPT] = source
    return job


def ended(job: Job, at: int) -> Job:
    """The job, which ends in an orderly way."""
    job.ended_ns = at + S
    job.event(ProcessEnded(at=at))
    return job


def prompts(
    count: int,
    *,
    line: int = TOKENIZE,
    hidden: Container[int] = (),
    pause: int = PAUSE_NS,
    source: str = LOOP,
    steps: int = STEPS,
) -> Job:
    """``count`` times a pause at a line, then steps. ``hidden``: turns in gaps, of which calls were only counted."""
    job = started(source)
    step = job.function("step", call_file=SCRIPT, call_line=STEP, call_function="main")
    at = 2 * S
    for turn in range(count):
        times = range(at + 50 * MS, at + pause + 1, 50 * MS)
        job.samples(times, Frame(SCRIPT, "main", line), Frame(SCRIPT, "slow", 40))
        begun, at = at, at + pause
        if turn in hidden:
            job.gap(begun, pause + steps * STEP_NS, steps, Kind.FUNCTION)
        else:
            step.every(STEP_NS, steps, dur=8 * MS, start=at)
            job.samples(range(at + 5 * MS, at + steps * STEP_NS, 100 * MS), Frame(SCRIPT, "main", STEP))
        at += steps * STEP_NS
    return ended(job, at)


def folds(count: int, *, lines: tuple[int, ...] = (50,), trace: int = 200 * MS, inside: bool = True) -> Job:
    """Fits of a second, each after a second of the user's Python. A trace is made in the first step or before it."""
    job = started()
    run = job.execution()
    at = 2 * S
    for fold in range(count):
        times = range(at + 50 * MS, at + S + 1, 50 * MS)
        job.samples(times, Frame(SCRIPT, "main", 47), Frame(SCRIPT, "load_table", 20))
        at += S
        job.trace(at, trace, owner="keras", file="trainer.py")
        first = trace + 10 * MS
        run.at(at if inside else at + trace, first if inside else 8 * MS, arg=1)
        run.every(STEP_NS, (S - first) // STEP_NS, dur=8 * MS, start=at + first, arg=1)
        job.loop("fit", line=lines[fold % len(lines)]).at(at, S, arg=2560)
        at += S
    return ended(job, at)
