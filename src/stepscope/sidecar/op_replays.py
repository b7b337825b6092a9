"""Replays the heaviest ops of a job that has ended, alone, and stores what was measured in its session.

Only under ``run`` with a budget, after a job that ended well, and where an op trace shows what its steps computed.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING

import msgspec

from stepscope import store
from stepscope.causes.graph import heavy_ops, recipe_variants
from stepscope.collector.captures import budget
from stepscope.derive.view import SessionView
from stepscope.launcher import apply
from stepscope.machine import calibration
from stepscope.machine.replay import replay_process
from stepscope.model.log.events import ProcessStarted
from stepscope.model.log.graph import GraphsRead
from stepscope.model.session.replays import RecipeOrder, ReplayedOp, ReplayOrder, ReplayPart, Replays, ReplayTimes
from stepscope.store import replays as stored
from stepscope.tables.errors import StepscopeError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.causes.graph.heavy_ops import HeavyOps
    from stepscope.machine.replay.replay_process import ReplayLine
    from stepscope.model.session.replays import Recipe, Roofs, Variant
    from stepscope.model.session.session import Manifest

SECONDS = 6.0
"""Wall time for which an ended job's report may wait."""
LEAST_S = 1.5
"""Time to measure in any case, once TensorFlow is imported."""
MIN_COMPUTE = 0.20
"""Share of the job's wall time that its steps' calls must take: a smaller one is not worth the wait for the report."""
VARIED, THREADED = 6, 4
"""Number of the heaviest ops that are also measured with another type and batch, and with other threads."""
FAILED = "DX180"
"""The ops could not be replayed."""


def replay(session: Path, *, seconds: float = SECONDS) -> None:
    """Replay the heaviest ops of a session's steps if it has any, and store the times."""
    opened = store.open_session(session)
    if not wanted(opened.manifest):
        return
    view = SessionView(opened)
    found = heavy_ops.build(view)
    if found is None or not found.replayed() or not _worth(view):
        return
    measured = measure(view, found, seconds)
    if measured is not None:
        stored.write(session, measured)


def wanted(manifest: Manifest) -> bool:
    """Whether a job's ops may be replayed at all."""
    try:
        share = budget.parse(manifest.budget or budget.DEFAULT)
    except UsageError:
        return False
    return manifest.mode == "run" and manifest.exit_code == 0 and share > 0


def _worth(view: SessionView) -> bool:
    steps, anatomy = view.steps, view.anatomy
    if steps is None or anatomy is None or not steps.steady_count:
        return False
    whole_ns = steps.count * steps.steady_ns / steps.steady_count  # with those that were only counted
    return anatomy.ratio("call") * whole_ns >= MIN_COMPUTE * view.session.manifest.ended_ns


def measure(view: SessionView, found: HeavyOps, seconds: float) -> Replays | None:
    """The times of the heaviest ops alone; None if the job's Python is not known."""
    worker = view.worker
    started = worker.all(ProcessStarted) if worker is not None else []
    if worker is None or not started or not started[0].executable:
        return None
    told = worker.all(GraphsRead)
    threads = told[-1].intra_op if told else 0
    given = _environment(view.session.manifest) | (told[-1].environment if told else {})
    cores = len(os.sched_getaffinity(0))
    known = calibration.load()
    order = ReplayOrder(
        seconds=seconds,
        least_s=LEAST_S,
        parts=parts(
            [op.recipe for op in found.replayed() if op.recipe is not None], threads, cores, roofs=known is None
        ),
    )
    began = time.monotonic_ns()
    lines, problem = replay_process.run(started[0].executable, order, given)
    return assembled(lines, problem, threads=threads, cores=cores, wall_ns=time.monotonic_ns() - began, known=known)


def _environment(manifest: Manifest) -> dict[str, str]:
    try:
        return apply.environment(manifest.applied, os.environ)
    except StepscopeError:  # a library has gone since
        return dict(os.environ)


def parts(recipes: list[Recipe], threads: int, cores: int, *, roofs: bool) -> tuple[ReplayPart, ...]:
    """What is measured: the ops as they are, then in other types and batches, then with other threads.

    What ops in double precision take in single precision, and convolutions with their width as channels, comes first
    after each: it may be most of the step.
    """
    plain = [_order(recipe, "") for recipe in recipes]
    first = [[_order(recipe, kind) for recipe in recipes[:VARIED]] for kind in recipe_variants.FIRST]
    paired = [one for group in zip_longest(plain, *first) for one in group]
    later = [kind for kind in recipe_variants.KINDS if kind not in recipe_variants.FIRST]
    varied = [*paired, *(_order(recipe, kind) for kind in later for recipe in recipes[:VARIED])]
    other = cores if 0 < threads < cores else 1
    found = [ReplayPart(threads=threads, roofs=roofs, recipes=tuple(o for o in varied if o is not None))]
    if cores > 1:
        found.append(ReplayPart(threads=other, recipes=tuple(o for o in plain[:THREADED] if o is not None)))
    return tuple(found)


def _order(recipe: Recipe, variant: Variant) -> RecipeOrder | None:
    changed = recipe_variants.changed(recipe, variant)
    if changed is None:
        return None
    return RecipeOrder(
        key=recipe.key(), variant=variant, bytes=changed.bytes, inputs=changed.inputs, nodes=changed.nodes
    )


def assembled(
    lines: tuple[ReplayLine, ...], problem: str, *, threads: int, cores: int, wall_ns: int, known: Roofs | None
) -> Replays:
    """What the program said, as it is stored."""
    times: dict[str, list[ReplayTimes]] = defaultdict(list)
    for line in lines:
        if line.what == "op":
            times[line.key].append(
                msgspec.convert({f: getattr(line, f) for f in ReplayTimes.__struct_fields__}, ReplayTimes)
            )
    roofs = [line.roofs() for line in lines if line.what == "roofs"]
    return Replays(
        tensorflow=next((line.tensorflow for line in lines if line.what == "begin"), ""),
        cores=cores,
        threads=threads,
        fixed_ns=next((line.fixed_ns for line in lines if line.what == "fixed"), known.fixed_ns if known else 0.0),
        others_cores=max((line.others for line in lines if line.what == "busy"), default=0.0),
        wall_ns=wall_ns,
        ops=tuple(ReplayedOp(key=key, times=tuple(of_op)) for key, of_op in times.items()),
        roofs=roofs[0] if roofs else known,
        problem=problem,
    )
