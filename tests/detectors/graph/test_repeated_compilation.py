"""GRF010 repeated-compilation: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.op_traces import Maker
from tests.derive.sessions import MS, SCRIPT, Job
from tests.detectors.asking import find
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.traced_jobs import STEP, TRACE, TRACED, compiled, holding, untraced

from stepscope.detectors.base import run
from stepscope.detectors.graph.repeated_compilation import DETECTOR
from stepscope.detectors.registry import ALL

WALL = 11 * 100_000.0
FIXTURES = Fixtures(
    firing=lambda: compiled(WALL),
    expected=Expected(
        severity="high",
        cost=0.5,
        where=(),
        metrics=("recompilation_ratio", "compilations", "traced_steps"),
        title=("recompilation", "jit_f", "step 4", "1.1 s", "f32[8,4] became f32[6,4]"),
        introduced="data preparation",
        exposed="training",
        pipeline_stage="forward-backward",
        remedy="constant-shapes",
    ),
    silent=lambda: compiled(WALL, again=False),
    not_applicable=untraced,
    missing=TRACE,
    below=lambda: compiled(WALL * 0.108),
    at=lambda: compiled(WALL * 0.114),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def asks(job: Job) -> bool:
    """Whether GRF010 wants an op trace of a job."""
    _, checked, _ = run(ALL, job.view())
    (mine,) = [c for c in checked if c.detector == "GRF010"]
    return mine.outcome == "undecided" and mine.capture == "ops"


def traced(job: Job, signature: str, *, jit: bool = True, ordinal: int = 1) -> Job:
    """The program traces ``encode``, of this signature."""
    job.trace(0, MS, function="encode", file=SCRIPT, line=7, end_line=9, jit=jit, signature=signature, ordinal=ordinal)
    return job


@pytest.mark.parametrize(
    ("signature", "jit", "ordinal", "wanted"),
    [
        ("(ids: int32(32, None))", True, 1, True),
        ("(ids: int32(32, 64))", True, 3, True),
        ("(ids: int32(32, 64))", True, 1, False),
        ("(ids: int32(32, None))", False, 1, False),
    ],
    ids=["any-length", "traced-again", "one-shape", "not-compiled"],
)
def test_a_trace_is_wanted_where_shapes_may_change(signature: str, *, jit: bool, ordinal: int, wanted: bool) -> None:
    """A function for any length is traced once, whatever XLA does with it."""
    assert asks(traced(untraced(), signature, jit=jit, ordinal=ordinal)) == wanted


def compiling(name: str = "") -> Job:
    """A program is compiled in every traced step; ``name``: and a number, another one each time."""
    made = Maker()
    for i in range(TRACED):
        made.step(STEP * i, STEP - 1, i)
        made.span(made.main, "XlaCompile", STEP * i + 5, 80_000, name=f"{name}_{i}" if name else "a_inference_encode_9")
    return traced(holding(made.trace()), "(ids: int32(32, None))")


def test_a_compilation_in_every_step_leaves_what_is_not_compiling() -> None:
    """No step is without one: the usual step is what remains of each."""
    (found,) = find(compiling())
    assert (found.code, [(p.file, p.line) for p in found.where]) == ("GRF010", [("train.py", 7)])
    assert found.cost.ratio == pytest.approx(0.8 * (TRACED - 2) / (TRACED - 1), abs=0.02)


def test_programs_that_are_compiled_once_each_are_none() -> None:
    """What has not been compiled in the trace before may be another function's first call."""
    assert find(compiling("other")) == ()


def test_a_cache_of_programs_is_said() -> None:
    """The program is another one in each such step all the same: same cause, same remedy."""
    made = Maker()
    for i in range(TRACED):
        made.step(STEP * i, STEP - 1, i)
        made.span(made.main, "PjitFunction(f)", STEP * i + 1, STEP / 2)
        made.span(made.main, "dot", STEP * (i + 1) - 90, 50, hlo_op="dot", hlo_module="jit_f", program_id=i)
        made.span(made.main, "lower_sharding_computation", STEP * i + 100, STEP / 4)
    (found,) = [f for f in find(holding(made.trace())) if f.code == "GRF010"]
    assert "jit_f was traced again and taken from the compilation cache in 10 of 11 traced steps" in found.title
    assert found.remedies[0].id == "constant-shapes"
