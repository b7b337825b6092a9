"""INI001 slow-initialisation: its fixtures, and what looks like it."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, Job, S
from tests.detectors.asking import codes, find, look
from tests.detectors.fixture import CLAIMS, Claim, Expected, Fixtures
from tests.detectors.jobs import MAKE, unsampled
from tests.detectors.resource_jobs import MB, on_network
from tests.detectors.trend_jobs import loading

from stepscope.detectors.system.slow_initialisation import DETECTOR
from stepscope.wire.kinds import Kind

FIXTURES = Fixtures(
    firing=lambda: loading(9900 * MS),
    expected=Expected(
        severity="high",
        cost=0.5,
        per_step=99_000_000,
        where=(("loader.py", 7), ("train.py", MAKE)),
        metrics=(
            "initialisation_ratio",
            "import_ns",
            "own_code_ns",
            "model_building_ns",
            "first_calls_ns",
            "first_batch_ns",
            "samples_on_code",
        ),
        title=("slow initialisation", "read_all", "9.9 s before the first step", "50 %"),
        introduced="data preparation",
        exposed="initialization",
        pipeline_stage="none",
        remedy="load-in-pipeline",
    ),
    silent=lambda: loading(9900 * MS, traced=True),
    not_applicable=unsampled,
    missing="stack samples",
    below=lambda: loading(3299 * MS),
    at=lambda: loading(3301 * MS),
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_loading_that_a_busy_machine_stretches_is_not_slow() -> None:
    """What takes little CPU time is not slow by itself; files read one by one for long are."""
    assert "INI001" not in codes(loading(9900 * MS, used=0.2))
    assert "INI001" in codes(loading(16 * S, used=0.1))


def test_a_slow_session_is_named() -> None:
    """What ONNX Runtime takes to make a session is told as that, with what helps there."""
    job = loading(9900 * MS)
    job.framework("onnxruntime", "1.23.0")
    job.call(Kind.BUILD, "InferenceSession", role="session").at(0, 9800 * MS)
    (found,) = [f for f in look(job)[0] if f.code == "INI001"]
    assert "most of it in InferenceSession" in found.title
    assert (found.cause, found.remedies[0].id) == ("API: inefficient API usage", "keep-the-optimised-model")


def test_a_session_that_is_made_beside_what_is_slow_is_not() -> None:
    """A short build within a long loading is not what the loading is."""
    job = loading(9900 * MS)
    job.call(Kind.BUILD, "InferenceSession", role="session").at(0, 900 * MS)
    (found,) = [f for f in look(job)[0] if f.code == "INI001"]
    assert "InferenceSession" not in found.title


def test_loading_is_short_against_a_long_run() -> None:
    """The same loading before ten times the steps is no finding."""
    job = loading(3500 * MS)
    assert "INI001" in codes(job)
    job.records = [
        r if r.kind != Kind.FUNCTION else r._replace(start_ns=r.start_ns * 10, dur_ns=200 * MS) for r in job.records
    ]
    assert "INI001" not in codes(job)


def downloading(rate: float, *, own: float = 1.0) -> Job:
    """The loading of 16 s while so many bytes a second arrive on the wire for 15 s; ``own``: of them, by the job."""
    job = loading(16 * S, used=0.2)
    job.machine(20, cpus=2)
    received = [rate * (second < 15) for second in range(20)]
    return on_network(job, received, [0.0] * 20, own=own, gaps=None)


@pytest.mark.parametrize(("rate", "advice"), [(20 * MB, "stream-the-data"), (MB // 2, "load-in-pipeline")])
def test_a_download_is_named(rate: int, advice: str) -> None:
    """Where data arrive for most of the function's time, it is a download, with size and rate; a trickle is none."""
    (found,) = (f for f in find(downloading(rate)) if f.code == "INI001")
    values = {e.metric: e.value for e in found.evidence}
    assert found.remedies[0].id == advice
    assert ("286 MiB arrive over the network" in found.title) is (advice == "stream-the-data")
    assert values.get("received_bytes_per_s", 20 * MB) == pytest.approx(20 * MB)


def test_what_others_download_is_no_cause() -> None:
    """Bytes on the wire of which the job received none, and that started no program, are somebody else's."""
    (found,) = (f for f in find(downloading(20 * MB, own=0.0)) if f.code == "INI001")
    assert found.remedies[0].id == "load-in-pipeline"
