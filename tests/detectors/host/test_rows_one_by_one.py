"""HST018 rows-one-by-one: its fixtures, and loops and models for which one row at a time is right."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, US, Frame, Job
from tests.detectors.asking import codes
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.fixture import look as looked_at
from tests.detectors.jobs import nothing
from tests.detectors.wait_jobs import SOCKET, look, looked

from stepscope.detectors.host.rows_one_by_one import DETECTOR
from stepscope.model.log.events import InferenceSession
from stepscope.tables.nearby import ModelWeights
from stepscope.wire.kinds import Kind

RUNS, STEP = 4_000, MS
OVER_ROWS = """def score(session, table):
    out = []
    for row in table:
        y = session.run(None, {"x": row[None]})
        out.append(y[0].mean())
    return out
"""
FED_BACK = """def decode(session, state):
    for _ in range(100):
        state = session.run(None, {"x": state})[0]
    return state
"""
SERVING = """def serve(session, requests):
    while True:
        requests.answer(session.run(None, {"x": requests.get()}))
"""
KEPT = """class Model:
    def __call__(self, chunk):
        out, self.h = self.session.run(None, {"x": chunk, "h": self.h})
        return out

def score(model, audio):
    return [model(chunk) for chunk in audio]
"""
BENCHMARK = """def measure(session, x):
    for _ in range(1000):
        session.run(None, {"x": x})
"""
HELPER = """def one(session, row):
    return session.run(None, {"x": row})

def score(session, table):
    return [one(session, row) for row in table]
"""


def scoring(
    run: int = 600 * US,
    *,
    rows: int = 1,
    runs: int = RUNS,
    weights: int = 2_000_000,
    open_batch: bool = True,
    provider: str = "CPUExecutionProvider",
    source: str = OVER_ROWS,
    line: int = 4,
    frames: tuple[Frame, ...] = (),
    every: int = STEP,
    waits: int = 0,
) -> Job:
    """Runs of a model from a line.

    Args:
        run: time of a run.
        rows: of a run.
        runs: number of runs.
        weights: of the model; 0: its file was not seen.
        open_batch: as the session says.
        provider: first one of the session.
        source: text of the script.
        line: of the call.
        frames: callers of its function.
        every: time from one run to the next.
        waits: time of every twentieth sample that finds the loop at a connection.
    """
    job = Job()
    job.framework("onnxruntime", "1.32.0")
    made = InferenceSession(model="m.onnx", providers=[provider], open_batch=open_batch, file=SCRIPT, line=30)
    job.event(made)
    job.models = (ModelWeights(model="m.onnx", floats=weights, denormal=0),)
    job.sources[SCRIPT] = source
    call = job.call(Kind.INFERENCE, "m.onnx", call_file=SCRIPT, call_line=line, call_function="score")
    call.every(every, runs, dur=run, arg=rows)
    at = [k * every + run // 2 for k in range(0, runs, 20)]
    job.samples(at, *frames, Frame(SCRIPT, "score", line), dur=20 * every)
    if waits:
        at = [k * every + run + 10 * US for k in range(0, runs, 20)]
        looked(job, look(job, *SOCKET, size=64), at, Frame(SCRIPT, "score", line), dur=waits)
    return job


FIXTURES = Fixtures(
    firing=scoring,
    expected=Expected(
        severity="high",
        cost=0.45,
        per_step=450 * US,
        basis="modelled",
        where=(("train.py", 4), ("train.py", 3)),
        metrics=("run_ratio", "rows", "runs", "run_ns", "ns_per_weight"),
        title=("one row at a time", "600 us", "60 %"),
        introduced="prediction",
        exposed="prediction",
        pipeline_stage="forward-backward",
        remedy="run-many-rows",
    ),
    silent=lambda: scoring(rows=32),
    not_applicable=nothing,
    missing="steps",
    below=lambda: scoring(95 * US),
    at=lambda: scoring(105 * US),
    edges={
        "max_rows": Edge(below=lambda: scoring(rows=5), at=lambda: scoring(rows=4)),
        "min_runs": Edge(below=lambda: scoring(runs=50), at=lambda: scoring(runs=60)),
        "max_waits": Edge(below=lambda: scoring(waits=2 * MS), at=scoring),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_a_loop_in_the_caller_counts() -> None:
    ((found,), _) = looked_at(DETECTOR, scoring(source=HELPER, line=2, frames=(Frame(SCRIPT, "score", 5),)))
    assert [place.line for place in found.where] == [2, 5]


@pytest.mark.parametrize(
    "job",
    [
        lambda: scoring(source=FED_BACK, line=3),
        lambda: scoring(source=SERVING, line=3),
        lambda: scoring(source=HELPER, line=2),
        lambda: scoring(source=KEPT, line=3, frames=(Frame(SCRIPT, "score", 7),)),
        lambda: scoring(source=BENCHMARK, line=3),
        lambda: scoring(open_batch=False),
        lambda: scoring(provider="CUDAExecutionProvider"),
        lambda: scoring(weights=500_000),
        lambda: scoring(weights=0),
    ],
    ids=[
        "fed back",
        "requests",
        "no loop seen",
        "state kept",
        "benchmark",
        "fixed size",
        "on a GPU",
        "arithmetic",
        "file not seen",
    ],
)
def test_where_one_row_is_right_or_nothing_is_known(job: object) -> None:
    """Results that are fed back, requests, sizes that are fixed, and runs whose arithmetic takes their time."""
    assert callable(job)
    assert "HST018" not in codes(job())
