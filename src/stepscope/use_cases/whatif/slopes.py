"""Slopes: the places that are delayed, their runs, and what these say."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from stepscope.experiments import interventions, proofs, schedule
from stepscope.experiments import slopes as in_blocks
from stepscope.experiments.schedule import UNCHANGED
from stepscope.model.log.events import IteratorModel
from stepscope.model.log.intervention import BlockEnded, DelayEnded
from stepscope.model.slope import WhatIfSlope
from stepscope.readers.iterator_model import parse
from stepscope.readers.protobuf.codec import ProtoError
from stepscope.store import open_session
from stepscope.tables.errors import TargetError
from stepscope.use_cases.whatif.runs import blocks_of
from stepscope.wire import trials as trials_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from stepscope.model.report.report import Report
    from stepscope.model.session.session import Worker
    from stepscope.tables.place import Place
    from stepscope.use_cases.whatif.recorded import RecordedRuns
    from stepscope.use_cases.whatif.runs import TrialRun

NAME = "slopes"
SECONDS = 120.0
"""Time of a place's blocks, where nothing else is asked for."""
LOOK_S = 12.0
"""Seconds of steady steps of the run that names places."""
MOST = 2
"""Places that a first run names at most."""
IN_PYTHON = frozenset({"HST", "INP", "TRD", "GEN"})
"""Families of findings whose place may be a function of Python."""
NONE_NAMED = "no finding and no line of the report names a Python function of the program; name one: slopes:FUNCTION"


def of(trials: Iterable[str]) -> tuple[str, ...]:
    """Those of some trials that are slopes."""
    return tuple(one for one in trials if trials_of.split(one)[0] == NAME)


def others(trials: Iterable[str]) -> list[str]:
    """All others."""
    return [one for one in trials if trials_of.split(one)[0] != NAME]


def measured(recorded: RecordedRuns, trials: Sequence[str]) -> tuple[WhatIfSlope, ...]:
    """The slopes of places; one without a place stands for what a first run names.

    Raises:
        NotMeasuredError: the unchanged job has no steady steps.
        TargetError: the job as it is failed.
        CaptureError: nothing could be recorded.
    """
    if not any(not ran.trial for ran in recorded.runs):
        unchanged = recorded.measured(UNCHANGED, 1)
        if not unchanged.ns:
            raise schedule.NotMeasuredError(unchanged.why)
    if recorded.measure == "run":
        return tuple(WhatIfSlope(trial=one, why="the unchanged job shows no steady steps") for one in trials)
    wanted = {one: "asked for" for one in trials if one != NAME}
    if NAME in trials:
        recorded.say("slopes: running once to find out which places take the time")
        named = places(recorded.look(LOOK_S).report)
        if not named and not wanted:
            return (WhatIfSlope(trial=NAME, why=NONE_NAMED),)
        wanted = {**named, **wanted}
    return tuple(_measured(recorded, trial, reason) for trial, reason in wanted.items())


def places(report: Report) -> dict[str, str]:
    """Trials of the places that a report names, the first ``MOST``, and why each is tried."""
    found = dict[str, str]()
    functions = set[tuple[str, str]]()
    for place, reason in _named(report):
        trial = proofs.at(NAME, place)
        key = (place.file or "", place.function or str(place.line))
        if trial and place.function != "<module>" and key not in functions and len(found) < MOST:
            functions.add(key)
            found[trial] = reason
    return found


def _named(report: Report) -> Iterator[tuple[Place, str]]:
    for finding in report.findings:
        if finding.code[:3] in IN_PYTHON and finding.where:
            yield finding.where[0], f"{finding.code}: {finding.name}"
    lifted = interventions.by_name(NAME).lifts
    for entry in report.ledger:
        if entry.phase == "steps" and entry.where and entry.component in lifted:
            yield entry.where[0], "the line with most of the time"


def _measured(recorded: RecordedRuns, trial: str, reason: str) -> WhatIfSlope:
    recorded.say(f"{trial}: delayed and not, in turn, for up to {recorded.runner.delayed_s:.0f} s")
    try:
        ran = recorded.delayed(trial)
    except TargetError as error:
        return WhatIfSlope(trial=trial, why=str(error), reason=reason)
    found = of_run(recorded.runner.folder / ran.session, ran, reason)
    recorded.say(f"{trial}: {found.why or f'slope {found.slope:.2f} ({found.low:.2f} to {found.high:.2f})'}")
    return found


def of_run(session: Path, ran: TrialRun, reason: str = "asked for") -> WhatIfSlope:
    """What a run says of its place."""
    workers = open_session(session).workers
    most = max(workers, key=lambda one: len(list(one.all(BlockEnded))), default=None)
    lines = list(most.all(BlockEnded)) if most is not None else []
    known = next(iter(most.all(DelayEnded)), None) if most is not None else None
    delay = known or DelayEnded(at=0)
    blocks = [
        in_blocks.DelayedBlock(
            block=block,
            all_steps=line.all_steps,
            calls=line.calls,
            delayed=line.delayed,
            added_ns=line.added_ns,
            place_ns=line.place_ns,
        )
        for block, line in zip(blocks_of(lines), lines, strict=True)
    ]
    said = in_blocks.judge(blocks)
    why = delay.why or ran.note or (_changed(most, lines) if most is not None else "") or said.why
    return WhatIfSlope(
        trial=ran.trial,
        slope=round(said.slope, 4),
        low=round(said.low, 4),
        high=round(said.high, 4),
        pairs=said.pairs,
        step_ns=round(said.step_ns),
        place_ns=round(said.place_ns),
        added_ns=round(said.added_ns),
        cost_ns=round(said.slope * said.place_ns),
        cost_low_ns=round(said.low * said.place_ns),
        cost_high_ns=round(said.high * said.place_ns),
        how=delay.how,
        buffered=delay.buffered,
        threads=delay.threads,
        reason=reason,
        why=why,
        session=ran.session,
    )


def _changed(worker: Worker, lines: Sequence[BlockEnded]) -> str:
    """That tf.data has changed a buffer or a parallelism while blocks were made; "" if not."""
    if not lines:
        return ""
    first_ns, last_ns = lines[0].at, lines[-1].at + lines[-1].dur_ns
    seen = dict[tuple[int, int, str], float]()
    for model in worker.all(IteratorModel):
        if not (model.proto and first_ns <= model.at <= last_ns):
            continue
        try:
            nodes = parse(base64.b64decode(model.proto)).nodes.values()
        except (ProtoError, binascii.Error):  # said where pipelines are read
            continue
        for node in nodes:
            for name, value in node.parameters.items():
                before = seen.setdefault((model.iterator, node.id, name), value)
                if before != value:
                    return f"tf.data changed {name} of {node.name} from {before:g} to {value:g} meanwhile"
    return ""
