"""GEN013 time-outside-steps: its fixtures."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S
from tests.derive.turn_jobs import TOKENIZE, folds, prompts
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import PERIOD, STEPS, nothing, train_loop

from stepscope.derive.ledger import loop_edges
from stepscope.derive.view import SessionView
from stepscope.detectors.base import run
from stepscope.detectors.general.time_outside_steps import DETECTOR
from stepscope.detectors.registry import GENERAL
from stepscope.model.log.events import ProcessEnded
from stepscope.model.session.session import Session
from stepscope.tables.findings import Finding
from stepscope.wire.kinds import Kind

LOAD = Frame(SCRIPT, "load", 70)


def late(between: int, steps: int = STEPS, *, pauses: int = 2, inner: Sequence[Frame] = (LOAD,)) -> Job:
    """Loops of ``steps`` steps of 100 ms with ``between`` of the user's Python between them, in so many pauses."""
    job = train_loop(90 * MS, steps=steps)
    job.framework(at=2, dur=1)
    later = job.function(call_file=SCRIPT, call_line=44, call_function="main")
    for number in range(pauses):
        end = (number + 1) * steps * PERIOD + number * between // pauses
        job.samples(range(end, end + between // pauses, 50 * MS), Frame(SCRIPT, "main", 48), *inner)
        later.every(PERIOD, steps, dur=90 * MS, start=end + between // pauses)
    return job


FIXTURES = Fixtures(
    firing=lambda: late(4_000 * MS),
    expected=Expected(
        severity="info",
        cost=0.0,
        basis="unknown",
        where=(("train.py", 70),),
        metrics=("phase_ratio", "phase_ns", "part at train.py:70"),
        title=("between", "load"),
        per_step=0,
        pipeline_stage="none",
        remedy="less-often",
    ),
    silent=lambda: late(100 * MS),
    not_applicable=nothing,
    missing="steps",
    below=lambda: late(2_500 * MS, 300, pauses=1),
    at=lambda: late(4_000 * MS, 300, pauses=1),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It tells where its component's time goes, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)


def fits(making: int, dropping: int, count: int = 2) -> Job:
    """Fits of 10 s of steps; each needs so long before its first hook, and after its last one."""
    job = Job()
    job.framework(at=2, dur=1)
    at = 0
    for _ in range(count):
        first = at + making
        last = first + STEPS * PERIOD
        job.loop("fit").at(at, last + dropping - at)
        job.call(Kind.HOOK, "on_train_begin", hook="on_train_begin").at(first, MS)
        job.execution("train").every(PERIOD, STEPS, dur=90 * MS, start=first + 2 * MS)
        job.call(Kind.HOOK, "on_train_end", hook="on_train_end").at(last - MS, MS)
        at = last + dropping
    return job


@pytest.mark.parametrize(
    ("making", "dropping", "what"),
    [(8_000, 0, loop_edges.MAKING), (0, 8_000, loop_edges.DROPPING)],
)
def test_what_keras_does_at_the_edges_of_its_loops_is_said(making: int, dropping: int, what: str) -> None:
    """Making the dataset and letting go of the iterator lie between steps, where no line of the user's shows them."""
    found, _, _ = run([d for d in GENERAL if d.code == "GEN013"], fits(making * MS, dropping * MS).view())
    (said,) = (f for f in found if "between" in f.title)
    assert what in said.title
    assert "iterator" in said.explanation
    assert said.remedies[0].id == "fewer-loops"


def test_nobody_calls_a_single_fit_less_often() -> None:
    """What Keras does at its edges is said, without advice that the program follows already."""
    found, _, _ = run([d for d in GENERAL if d.code == "GEN013"], fits(0, 8 * S, count=1).view())
    (said,) = (f for f in found if "between" in f.title)
    assert loop_edges.DROPPING in said.title
    assert said.remedies == ()


def between(job: Job) -> list[Finding]:
    """The findings about what lies between the steps."""
    found, _, _ = run([d for d in GENERAL if d.code == "GEN013"], job.view())
    return [f for f in found if "phase:between-steps" in {ref for e in f.evidence for ref in e.refs}]


def test_a_function_of_each_turn_is_above_information() -> None:
    """One function between the steps of each turn, outside of the steady steps, has its share of the turn as cost."""
    (said,) = between(prompts(8, hidden=range(1, 7)))
    assert said.severity == "high"
    assert (said.cost.low, said.cost.basis) == (0.0, "modelled")
    assert said.cost.of_turn
    assert "in each of 8 turns" in said.title
    assert [place.line for place in said.where][:2] == [40, TOKENIZE]
    assert [remedy.id for remedy in said.remedies] == ["once-before-the-turns", "work-ahead"]


def test_a_short_function_of_each_turn_is_information() -> None:
    """Below a fifth of the turn it is no more than any other time outside of the steps."""
    assert {f.severity for f in between(prompts(8, hidden=range(1, 7), pause=270 * MS, steps=300))} == {"info"}


def test_what_the_steps_contain_is_told_once() -> None:
    """Pauses that the steady steps contain are Python between steps, too."""
    found, _, _ = run(GENERAL, prompts(8).view())
    assert [f.code for f in found if any(place.function == "slow" for place in f.where)] == ["GEN013"]


def test_what_recurs_in_turns_is_not_paid_once() -> None:
    """Traces of each fold are a part of the training, and the one model is advised."""
    found, _, _ = run([d for d in GENERAL if d.code == "GEN013"], folds(5, trace=400 * MS, inside=False).view())
    (said,) = (f for f in found if f.title.startswith("tracing"))
    assert said.exposed_stage == "training"
    assert "in each of 5 turns" in said.title
    assert said.remedies[0].id == "one-model"


KERAS = Frame("/usr/lib/python3/site-packages/keras/src/backend/tensorflow/trainer.py", "Trainer.fit", 400, own=False)
IMPORTLIB = Frame("<frozen importlib._bootstrap>", "_find_and_load", 1, own=False)


def ids(findings: Sequence[Finding]) -> list[list[str]]:
    """The remedies of each finding."""
    return [[remedy.id for remedy in found.remedies] for found in findings]


@pytest.mark.parametrize(
    ("frames", "remedy"),
    [
        ([KERAS], "longer-epochs"),
        ([KERAS._replace(function="TensorFlowTrainer.fit"), IMPORTLIB], "longer-epochs"),
        ([Frame(SCRIPT, "fit", 70)], "less-often"),
        ([Frame(SCRIPT, "on_epoch_end", 70), KERAS._replace(function="Trainer.evaluate")], "less-often"),
    ],
)
def test_time_between_the_epochs_of_one_fit_is_no_call_to_make_less_often(frames: list[Frame], remedy: str) -> None:
    """It is inside the call of fit; a function of the user's between the steps is not, whatever its name."""
    assert ids(between(late(4_000 * MS, inner=frames))) == [[remedy]]


@pytest.mark.parametrize("inner", [LOAD, KERAS, Frame(SCRIPT, "take", 70)])
@pytest.mark.parametrize("saves", [False, True])
def test_what_happened_once_is_not_done_less_often(inner: Frame, saves: bool) -> None:
    """A hang, a download, a debugger: one pause is told as one, also where something else lies in it."""
    job = late(6_000 * MS, pauses=1, inner=[inner])
    if saves:
        job.save().at(STEPS * PERIOD + 1_000 * MS, 50 * MS)
    (found,) = between(job)
    assert found.title.startswith("a single pause between the steps takes")
    assert ids([found]) == [["look-at-that-pause"]]


@pytest.mark.parametrize(("evaluations", "remedy"), [(1, "evaluate-less"), (2, "evaluate-less-often")])
def test_one_evaluation_can_only_be_made_shorter(evaluations: int, remedy: str) -> None:
    job = late(6_000 * MS, pauses=evaluations)
    for number in range(evaluations):
        start = (number + 1) * STEPS * PERIOD + number * 6_000 * MS // evaluations
        job.loop("evaluate").at(start + MS, 5_900 * MS // evaluations)
    found, _, _ = run([d for d in GENERAL if d.code == "GEN013"], job.view())
    assert [f.remedies[0].id for f in found if f.title.startswith("evaluations")] == [remedy]


def started(*, after: float = 0.0, logged: float = 0.0, inner: Frame | None = None) -> Session:
    """Steps of 10 s after 5 s, in which a framework is imported at last.

    Args:
        after: seconds after which torchrun starts the process of the steps; 0: it is the job's own.
        logged: seconds after which its log begins.
        inner: what the program's line calls from then on.
    """
    job = train_loop(90 * MS, offset=5 * S)
    job.framework(at=5 * S, dur=100 * MS)
    if inner is not None:
        job.samples(range(round(logged * S), 4_800 * MS, 50 * MS), Frame(SCRIPT, "<module>", 2), inner)
    session = job.session()
    (worker,) = session.workers
    pid = 7 if after else 100
    key = f"{pid}-{1000 + round(after * 100)}"
    info = msgspec.structs.replace(worker.info, key=key, started_ns=round((logged or 0.05) * S), pid=pid)
    command = ("/usr/bin/torchrun", "--nproc-per-node", "2", "train.py")
    manifest = msgspec.structs.replace(
        session.manifest, command=command if after else ("python", "train.py"), job_pid=100, origin_monotonic_ns=10 * S
    )
    return msgspec.structs.replace(session, manifest=manifest, workers=(msgspec.structs.replace(worker, info=info),))


def outside(session: Session) -> list[Finding]:
    """The findings about the time before the steps."""
    found, _, _ = run([d for d in GENERAL if d.code == "GEN013"], SessionView(session))
    before = {"phase:start", "phase:imports", "phase:building"}
    return [f for f in found if before & {ref for e in f.evidence for ref in e.refs}]


def imported(*calls: tuple[int, tuple[Frame, ...]]) -> Finding:
    """The finding about imports of a job whose lines (number, what they call) each take as long as the others."""
    job = train_loop(90 * MS, offset=9 * S)
    job.framework(at=MS, dur=MS)
    each = 8 * S // len(calls)
    for number, (line, inner) in enumerate(calls):
        job.samples(range(number * each, (number + 1) * each, 50 * MS), Frame(SCRIPT, "<module>", line), *inner)
    (found,) = (one for one in outside(job.session()) if one.title.startswith("imports"))
    return found


@pytest.mark.parametrize("finishing", [0, 500 * MS, 1_900 * MS])
def test_the_end_of_the_interpreter_is_no_line_of_the_program(finishing: int) -> None:
    """The program's last lines are sampled until it begins, and stand for that time alone."""
    job = train_loop(90 * MS, offset=S)
    job.framework(at=S, dur=100 * MS)
    last = S + STEPS * PERIOD
    job.samples(range(last, last + 2_000 * MS - finishing, 20 * MS), Frame(SCRIPT, "<module>", 31), LOAD)
    job.event(ProcessEnded(at=last + 2_000 * MS - finishing))
    job.ended_ns = last + 2_000 * MS
    found, _, _ = run([d for d in GENERAL if d.code == "GEN013"], job.view())
    (end,) = (one for one in found if one.title.startswith("the time after the last step"))
    mostly = finishing > 1_000 * MS
    assert [place.line for place in end.where] == ([] if mostly else [LOAD.line])
    assert ("1.9 s of it while the interpreter finishes" in end.title) == mostly
    assert (f"{100 if not finishing else 75} % of it in load" in end.title) == (not mostly)


ADAM = Frame("/usr/lib/python3/site-packages/torch/optim/adam.py", "Adam.__init__", 102, own=False)


def test_what_a_library_imports_when_it_is_called_is_no_import_to_move() -> None:
    """The program's line calls the library: it has no import statement."""
    found = imported((7, (ADAM, IMPORTLIB)))
    assert ids([found]) == [[]]
    assert "a library imports when it is first called" in found.explanation
    stated = imported((7, (IMPORTLIB, ADAM, IMPORTLIB)))
    assert ids([stated]) == [["import-less"]]
    assert "first called" not in stated.explanation


def test_each_import_of_a_module_has_its_line() -> None:
    """Lines of a module are statements, and no function that takes their time as a whole."""
    found = imported((1, (IMPORTLIB,)), (2, (IMPORTLIB,)), (7, (ADAM, IMPORTLIB)))
    assert {place.line for place in found.where} == {1, 2, 7}
    assert found.title.endswith("34 % of it in line 1")
    assert ids([found]) == [["import-less"]]


LAUNCHED = "what torchrun does before it starts the process of the steps takes"
OWN = "the program's start before it imports a framework takes"


@pytest.mark.parametrize(
    ("session", "said"),
    [
        (started(after=4.8, logged=4.9), [(f"{LAUNCHED} 32 %", [])]),
        (started(after=1.0, logged=4.9), [(f"{OWN} 26 %", ["look-at-the-start"]), (f"{LAUNCHED} 6.7 %", [])]),
        (started(after=0.5, logged=4.9), [(f"{OWN} 29 %", ["look-at-the-start"])]),
        (started(logged=4.9), [(f"{OWN} 33 %", ["look-at-the-start"])]),
        (started(inner=IMPORTLIB), [("imports take", ["import-less"])]),
        (
            started(inner=Frame(SCRIPT, "load", 70)),
            [("building models, data and graphs before the first step takes", ["keep-what-is-built"])],
        ),
    ],
)
def test_the_start_has_the_remedy_of_what_takes_it(session: Session, said: list[tuple[str, list[str]]]) -> None:
    """A launcher's time is none of the program's; imports are no data to keep, and what was not seen may be either."""
    found = outside(session)
    assert ids(found) == [remedies for _, remedies in said]
    for finding, (title, _) in zip(found, said, strict=True):
        assert finding.title.startswith(title)


@pytest.mark.parametrize(("name", "remedies"), [("torch", []), ("jax", []), ("tensorflow", ["keep-what-is-built"])])
def test_nothing_is_to_be_kept_of_what_was_not_seen(name: str, remedies: list[str]) -> None:
    """Before the first step of a job without samples there may be any import: no data or model is known to be made."""
    job = Job()
    job.framework(name, at=3 * S, dur=2 * S)
    job.call(Kind.APPLY, "apply", role="optimizer", call_file=SCRIPT, call_line=12).every(
        PERIOD, STEPS, dur=0, start=13 * S
    )
    if name == "tensorflow":
        job.samples(range(3 * S, 13 * S, 50 * MS), Frame(SCRIPT, "main", 48), Frame(SCRIPT, "load", 70))
    (found,) = (one for one in look(DETECTOR, job)[0] if "before the first step" in one.title)
    assert [one.id for one in found.remedies] == remedies
    assert ("no stacks were sampled" in found.title) == (not remedies)
