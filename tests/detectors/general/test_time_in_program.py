"""GEN015 time-in-program: its fixtures, which line it names, and when it is above information."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import nothing, train_loop

from stepscope.detectors.general.time_in_program import DETECTOR
from stepscope.diagnosis.analyze import report_of
from stepscope.model.log.events import ThreadSeen
from stepscope.report.brief import verdict_words

LIBRARY = "/env/lib/python3.11/site-packages"
MODULE = Frame(f"{LIBRARY}/torch/nn/modules/module.py", "Module._call_impl", 1790, own=False)
LINEAR = Frame(f"{LIBRARY}/torch/nn/modules/linear.py", "Linear.forward", 134, own=False)
JSON = Frame("/usr/lib/python3.11/json/__init__.py", "loads", 346, own=False)
SOURCE = """import json

class Net:
    def forward(self, x):
        return self.body(x)

def score(model, rows):
    out = []
    for row in rows:
        x = [float(one) for one in row]
        out.append(model(x))
    return out

def load(lines):
    return [json.loads(line) for line in lines]

def clean(row):
    low = min(row)
    return [one - low for one in row]

def serve(model, rows):
    for row in rows:
        answer(model, row)

def answer(model, row):
    return model(prepare(row))

def prepare(row):
    return parse(row)
"""
MAIN = Frame(SCRIPT, "<module>", 40)
SERVE = (MAIN, Frame(SCRIPT, "serve", 23))
ANSWER = (*SERVE, Frame(SCRIPT, "answer", 26))
PREPARE = (*ANSWER, Frame(SCRIPT, "prepare", 29))
CALL = (MAIN, Frame(SCRIPT, "score", 11), MODULE, Frame(SCRIPT, "Net.forward", 5), MODULE, LINEAR)
ROW = (MAIN, Frame(SCRIPT, "score", 10))
LOAD = (MAIN, Frame(SCRIPT, "load", 15), JSON)


def program(*parts: tuple[int, tuple[Frame, ...]], seconds: int = 20) -> Job:
    """A job of PyTorch without steps, sampled every 50 ms; of each part its percents of the run, and its stack."""
    job = Job(ended_ns=seconds * S)
    job.framework("torch", "2.13.0", at=2, dur=1)
    job.sources[SCRIPT] = SOURCE
    at = 10
    for percent, frames in parts:
        until = at + seconds * S * percent // 100
        job.samples(range(at, until, 50 * MS), *frames)
        at = until
    rest = seconds * S
    job.samples(range(at, rest, 50 * MS), Frame(f"{LIBRARY}/torch/serialization.py", "load", 9, own=False))
    return job


FIXTURES = Fixtures(
    firing=lambda: program((60, ROW), (20, CALL)),
    expected=Expected(
        severity="high",
        cost=0.8,
        basis="modelled",
        where=(("train.py", 10), ("train.py", 11)),
        metrics=("program_ratio", "program_ns", "line_ratio"),
        title=("the function score takes 80 % of the run", "75 % of it at train.py:10", "16 s"),
        per_step=0,
        introduced="prediction",
        exposed="prediction",
        pipeline_stage="none",
        remedy="mark-the-steps",
    ),
    silent=lambda: program((3, ROW)),
    not_applicable=nothing,
    missing="stack samples of any thread",
    below=lambda: program((4, ROW)),
    at=lambda: program((6, ROW)),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It names the function, from the least share on that a report must explain."""
    claim(DETECTOR, FIXTURES)


def test_a_loop_that_calls_a_model_is_named_by_its_own_line_and_claims_nothing() -> None:
    """Not the layer's line, which the framework calls back; whether the model has to take so long is not known."""
    ((found,), _) = look(DETECTOR, program((80, CALL)))
    assert [(place.line, place.function) for place in found.where] == [(11, "score")]
    assert (found.severity, found.cost.basis) == ("info", "unknown")
    report = report_of(program((80, CALL)).session())
    (shown,) = (one for one in report.findings if one.code == "GEN015")
    assert shown.does is not None
    assert ("Linear.forward" in shown.does.text, shown.does.short) == (True, "")
    said = verdict_words.text(report)
    assert said.startswith("No steps were seen; the largest part of the run: the function score takes 80 % of the run")


JOIN = (MAIN, Frame("/usr/lib/python3.11/threading.py", "Thread.join", 1119, own=False))


@pytest.mark.parametrize("works", [True, False], ids=["another thread works", "none works"])
def test_a_main_thread_that_waits_for_its_threads_is_not_the_one_to_look_at(*, works: bool) -> None:
    job = program((100, JOIN))
    job.event(ThreadSeen(id=7, name="worker"))
    frames = ROW if works else JOIN
    job.samples(range(20, 20 * S, 100 * MS), *frames, thread=7)
    (found, *_), _ = look(DETECTOR, job)
    assert (found.where[0].line, found.severity) == ((10, "high") if works else (40, "info"))


@pytest.mark.parametrize(
    ("below", "waits"),
    [
        (("socketserver.py", "BaseServer.serve_forever"), "requests"),
        (("asyncio/base_events.py", "BaseEventLoop.run_forever"), "requests"),
        (("threading.py", "Thread.join"), "other threads"),
    ],
)
def test_a_program_that_waits_for_the_work_of_others_loses_nothing(below: tuple[str, str], waits: str) -> None:
    """A server without requests, and a main thread whose threads have ended."""
    file, function = below
    frame = Frame(f"/usr/lib/python3.11/{file}", function, 9, own=False)
    ((found,), _) = look(DETECTOR, program((95, (MAIN, frame))))
    assert found.severity == "info"
    assert f"waits for {waits} for 95 %" in found.title


def test_below_the_only_loop_the_function_with_the_time_is_named() -> None:
    """Its turns are requests: the line that answers one says nothing. What takes a fifth of its caller is no reason."""
    found, _ = look(DETECTOR, program((60, PREPARE), (12, (*ANSWER, MODULE)), (8, SERVE)))
    assert [(one.where[0].line, one.where[0].function) for one in found] == [
        (29, "prepare"),
        (26, "answer"),
        (23, "serve"),
    ]
    found, _ = look(DETECTOR, program((50, ANSWER), (20, PREPARE)))
    assert [(one.where[0].line, one.title) for one in found] == [
        (26, "the function answer takes 70 % of the run, 100 % of it at train.py:26 (14 s in all)")
    ]


def test_a_loop_inside_of_another_is_named_itself() -> None:
    """Not the function that it calls for each element: the loop is what whole arrays could replace."""
    inner = (MAIN, Frame(SCRIPT, "serve", 23), Frame(SCRIPT, "clean", 19), Frame(SCRIPT, "shift", 35))
    ((found,), _) = look(DETECTOR, program((70, inner)))
    assert [(place.line, place.function) for place in found.where] == [(19, "clean")]


def test_a_function_whose_time_is_spread_over_its_lines_has_a_place() -> None:
    """Of twelve lines with a twelfth each none has a tenth."""
    parts = [(7, (MAIN, Frame(SCRIPT, "work", 50 + i))) for i in range(12)]
    ((found,), _) = look(DETECTOR, program(*parts))
    assert "the function work takes 84 %" in found.title
    assert len(found.where) == 1


def test_lines_that_may_call_a_framework_in_c_stay_information() -> None:
    """``x @ w`` of PyTorch has no frame: the line looks like Python."""
    job = program((80, ROW))
    job.sources[SCRIPT] = SOURCE.replace("[float(one) for one in row]", "row @ weights")
    ((found,), _) = look(DETECTOR, job)
    assert (found.severity, found.where[0].line) == ("info", 10)


def test_work_of_a_known_kind_comes_with_its_remedy() -> None:
    report = report_of(program((15, LOAD), (70, CALL)).session())
    first = report.findings[0]
    assert (first.code, first.severity, first.where[0].line) == ("GEN015", "medium", 15)
    assert first.does is not None
    assert first.does.short.startswith("parsing of JSON")
    assert first.remedies[0].id == "less-json"


def test_a_job_whose_steps_were_seen_has_other_findings() -> None:
    findings, checked = look(DETECTOR, train_loop(90 * MS))
    assert (findings, checked.outcome, checked.hint) == ((), "not-applicable", "the job's steps were seen")
