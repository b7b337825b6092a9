"""HST001 slow-python-in-loop: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.derive.sessions import MAIN, MS, SCRIPT, US, Frame, Job
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures, look
from tests.detectors.jobs import MAIN_CALL, MAKE, PERIOD, REPORT, STEPS, sampled, train_loop, unsampled

from stepscope.derive.ledger import pauses
from stepscope.detectors.host.slow_python_in_loop import DETECTOR
from stepscope.model.log.waits import WaitSeen
from stepscope.tables.units import format_ns
from stepscope.wire.kinds import Flag, Kind

FIXTURES = Fixtures(
    firing=lambda: sampled(after=50 * MS),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(("train.py", 8), ("train.py", REPORT)),
        metrics=("other_python_ratio", "samples_on_code", "samples"),
        title=("slow Python code", "on the results of the step", "report", "50 %"),
        pipeline_stage="output-processing",
        remedy="do-it-less-often",
    ),
    silent=lambda: sampled(before=50 * MS),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: sampled(after=10 * MS - US),
    at=lambda: sampled(after=10 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_logging_now_and_then_is_none() -> None:
    """Python that runs every tenth step and is short stays below what is worth a finding."""
    job = train_loop(95 * MS)
    job.samples(
        [i * PERIOD + 97 * MS for i in range(1, STEPS)],
        Frame(SCRIPT, "main", REPORT),
        Frame(SCRIPT, "report", 8),
    )
    assert codes(job) == []


def parts(**shares: int) -> Job:
    """A loop whose step takes what the functions leave of 100 ms; each of these is sampled that often in a step, after
    the step, called by ``report``.
    """
    job = train_loop(PERIOD - sum(shares.values()) * MS)
    at = PERIOD - sum(shares.values()) * MS
    for number, (name, share) in enumerate(shares.items()):
        moments = [i * PERIOD + at + k * MS for i in range(STEPS) for k in range(share)]
        entry = Frame(SCRIPT, "main", REPORT), Frame(SCRIPT, "report", 8)
        job.samples(moments, *entry, *([Frame("/job/metrics.py", name, 10 + number)] if name != "own" else []), dur=MS)
        at += share * MS
    return job


@pytest.mark.parametrize(
    ("shares", "named"),
    [
        ({"confusion": 30, "histogram": 25, "own": 2}, [("confusion", 0.3), ("histogram", 0.25)]),
        ({"confusion": 30, "own": 12}, [("confusion", 0.3), ("report", 0.12)]),
        ({"confusion": 15, "own": 30}, [("report", 0.45)]),
        ({"a": 9, "b": 9, "c": 9}, [("report", 0.27)]),
        ({"a": 15, "b": 14, "c": 13, "d": 12}, [("report", 0.54)]),
    ],
)
def test_a_cost_is_that_of_the_function_that_is_named(shares: dict[str, int], named: list[tuple[str, float]]) -> None:
    """What a remedy for one function removes is the time in it and in what it calls, not all Python of the loop."""
    found, _ = look(DETECTOR, parts(**shares))
    assert [(one.where[0].function, round(one.cost.ratio, 2)) for one in found] == named
    for one, (name, share) in zip(found, named, strict=True):
        assert f"in {name}" in one.title
        assert f": {share * 100:.0f} % of the time" in one.title


TORCH_LOOP = """\
import json
import math
import torch
def tidy(rows):
    total = 0.0
    for row in rows:
        total += math.sqrt(abs(row))
    return json.dumps(total)
def mix(x):
    return x @ x.T
def main():
    for batch in loader:
        loss = model(mix(batch))
        loss.backward()
        optimizer.step()
        tidy(rows)
"""
LIBRARY = "/usr/lib/python3.11/"
TORCH = LIBRARY + "site-packages/torch/autograd/graph.py"
ENCODE = Frame(LIBRARY + "json/encoder.py", "encode", 1, own=False)


def torch_loop(*leaves: Frame) -> Job:
    """A loop of PyTorch whose samples are all in ``main`` and in what it calls there."""
    job = Job()
    job.framework("torch", "2.13.0")
    job.sources[SCRIPT] = TORCH_LOOP
    main = {"call_file": SCRIPT, "call_line": 15, "call_function": "main"}
    ends = job.call(Kind.APPLY, "optimizer step", role="optimizer", **main)
    ends.every(PERIOD, STEPS, dur=0, start=90 * MS)
    job.samples([i * PERIOD + 50 * MS for i in range(STEPS)], *leaves)
    return job


@pytest.mark.parametrize(
    ("outcome", "leaves"),
    [
        ("found", (Frame(SCRIPT, "main", 16), Frame(SCRIPT, "tidy", 7))),
        ("found", (Frame(SCRIPT, "main", 16), Frame(SCRIPT, "tidy", 8), ENCODE)),
        ("clear", (Frame(SCRIPT, "main", 14), Frame(TORCH, "_engine_run_backward", 1, own=False))),
        ("clear", (Frame(SCRIPT, "main", 14),)),
        ("undecided", (Frame(SCRIPT, "main", 13), Frame(SCRIPT, "mix", 10))),
        ("clear", (Frame(SCRIPT, "main", 12),)),
    ],
)
def test_calls_of_pytorch_are_no_slow_python(outcome: str, leaves: tuple[Frame, ...]) -> None:
    """What may be PyTorch's work is not blamed, with a frame of its own or without; what calls it nowhere is.

    Of a function that the loop calls it is open which of both it is.
    """
    job = torch_loop(*leaves)
    seen, checked = look(DETECTOR, job)
    assert [finding.where[0].function for finding in seen] == (["tidy"] if outcome == "found" else [])
    assert checked.outcome == outcome
    if outcome == "undecided":
        assert checked.hint == "mix takes 100 % of the time, in Python or in calls of PyTorch"
    assert all("TensorFlow" not in finding.explanation for finding in seen)


STEPS_IN_A_FUNCTION = """\
import math
def tidy(rows):
    return sum(math.sqrt(abs(row)) for row in rows)
def scale(rows):
    return sum(math.floor(abs(row)) for row in rows)
def note(rows):
    return sum(math.ceil(abs(row)) for row in rows)
def train():
    for batch in loader:
        model(batch).backward()
        optimizer.step()
        tidy(rows)
        scale(rows)
        note(rows)
def main():
    train()
"""


def test_what_runs_the_loop_is_no_function_to_run_less_often() -> None:
    """Where no function has most of the time, the functions around the loop have all of it: they make the steps, too,
    though no sample of a call of PyTorch's shows it."""
    job = Job()
    job.framework("torch", "2.13.0")
    job.sources[SCRIPT] = STEPS_IN_A_FUNCTION
    where = {"call_file": SCRIPT, "call_line": 11, "call_function": "train"}
    job.call(Kind.APPLY, "optimizer step", role="optimizer", **where).every(PERIOD, STEPS, dur=0, start=90 * MS)
    around = Frame(SCRIPT, "<module>", 17), Frame(SCRIPT, "main", 16)
    for first, line, name, inner in ((10, 10, "", 0), (30, 12, "tidy", 3), (50, 13, "scale", 5), (70, 14, "note", 7)):
        frames = (*around, Frame(SCRIPT, "train", line), *([Frame(SCRIPT, name, inner)] if name else []))
        job.samples([i * PERIOD + first * MS for i in range(STEPS)], *frames)
    seen, _ = look(DETECTOR, job)
    assert sorted(finding.where[0].function for finding in seen) == ["note", "scale", "tidy"]
    assert [round(finding.cost.ratio, 1) for finding in seen] == [0.2, 0.2, 0.2]


@pytest.mark.parametrize(
    ("statement", "first"), [("scores.put(loss)", "vectorise"), ("log.put(loss)", "do-it-less-often")]
)
def test_what_the_next_step_reads_is_not_to_run_less_often(statement: str, first: str) -> None:
    """Batches are drawn by scores that the code changes: only a faster change helps. A log may be written rarely."""
    job = sampled(after=50 * MS)
    lines = job.sources[SCRIPT].split("\n")
    lines[MAKE - 1] = lines[MAKE - 1].partition("=")[0] + "= make_batch(scores.draw())"
    lines[REPORT - 1] = lines[REPORT - 1][: -len(lines[REPORT - 1].lstrip())] + statement
    job.sources[SCRIPT] = "\n".join(lines)
    (found,) = look(DETECTOR, job)[0]
    assert found.remedies[0].id == first


RANKS = """\
import numpy as np
def confusion(cm):
    for c in range(20):
        cm[c].mean()
        np.argsort(cm[c])
def main():
    for x in data:
        step(x)
        confusion(cm)
"""
NUMPY_MEAN = Frame(LIBRARY + "site-packages/numpy/_core/_methods.py", "_mean", 120, own=False)
NUMPY_SORT = Frame(LIBRARY + "site-packages/numpy/_core/fromnumeric.py", "argsort", 1100, own=False)


@pytest.mark.parametrize(
    ("mean", "sort", "line", "end", "said", "remedy"),
    [
        (18, 2, 4, None, "confusion (mean)", "call mean less often"),
        (2, 18, 5, None, "confusion (np.argsort)", "call np.argsort less often"),
        (11, 9, 4, None, "confusion (mean)", "call mean less often"),
        (10, 10, 4, 5, "confusion: ", "run confusion every N steps"),
    ],
)
def test_the_line_and_the_call_with_most_of_the_time_are_named(
    mean: int, sort: int, line: int, end: int | None, said: str, remedy: str
) -> None:
    """The place is the lines with more than half of the function's time, the remedy a call only if it is surely so."""
    job = train_loop(PERIOD - 20 * MS)
    job.sources["/job/metrics.py"] = RANKS
    entry = Frame(SCRIPT, "main", REPORT)
    for number in range(20):
        at, leaf = (4, NUMPY_MEAN) if number < mean else (5, NUMPY_SORT)
        moments = [i * PERIOD + (80 + number) * MS for i in range(STEPS)]
        job.samples(moments, entry, Frame("/job/metrics.py", "confusion", at), leaf, dur=MS)
    (found,), _ = look(DETECTOR, job)
    assert (found.where[0].line, found.where[0].end_line) == (line, end)
    assert said in found.title
    assert found.remedies[0].text.startswith(remedy)


def test_the_time_of_being_ready_counts_where_the_thread_ran() -> None:
    """On a busy machine the agent meets the thread in the function that lets the interpreter lock go, whichever lost
    its CPU: by its CPU clock one runs for twice as long as the other, and takes twice as long.
    """
    job = train_loop(40 * MS)
    entry = Frame(SCRIPT, "main", REPORT)
    means, ranks = Frame("/job/metrics.py", "means", 4), Frame("/job/metrics.py", "ranks", 9)
    starts = [i * PERIOD for i in range(STEPS)]
    job.samples([at + 50 * MS for at in starts], entry, means, dur=10 * MS, flags=Flag.CPU)
    job.samples([at + 90 * MS for at in starts], entry, ranks, dur=5 * MS, flags=Flag.CPU)
    job.event(WaitSeen(id=7, call="running"))
    job.look = 7
    job.samples([at + 95 * MS for at in starts], entry, ranks, dur=45 * MS)
    job.thread_cpu(STEPS // 10, {MAIN: 25})
    job.threads = replace(job.threads, wait_ns=3 * job.threads.run_ns)
    found, _ = look(DETECTOR, job)
    assert [(one.where[0].function, round(one.cost.ratio, 2)) for one in found] == [("means", 0.4), ("ranks", 0.2)]
    assert all(one.cost.low < as_taken < one.cost.high for one, as_taken in zip(found, (0.1, 0.5), strict=True))


def test_the_time_a_step_is_of_the_mean_of_all_steps() -> None:
    """A third of the steps was only counted, and took longer: the ms are the share of the report's mean step."""
    job, begin, hidden = sampled(after=50 * MS), STEPS * PERIOD, 100 * PERIOD
    job.gap(begin - MS, hidden, STEPS // 2, Kind.FUNCTION)
    job.function(**MAIN_CALL).every(PERIOD, 3, dur=50 * MS, start=begin + hidden)
    view = job.view()
    assert view.steps is not None
    mean = pauses.mean_ns(view.steps)
    (found,) = look(DETECTOR, job)[0]
    assert mean == pytest.approx(4 / 3 * PERIOD, rel=0.05)
    assert found.cost.ns_per_step == pytest.approx(found.cost.ratio * mean, abs=1)
    assert f"takes {format_ns(found.cost.ratio * mean)} a step" in found.title
