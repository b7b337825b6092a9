"""INI002 slow-import: its fixtures, and what it says of whose imports."""

from __future__ import annotations

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S
from tests.detectors.asking import find
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.jobs import CALL, MAKE, train_loop, unsampled
from tests.detectors.resource_jobs import MB
from tests.detectors.trend_jobs import loading

from stepscope.detectors.system.slow_import import DETECTOR
from stepscope.diagnosis.analyze import report_of
from stepscope.model.log.program import ImportAsked
from stepscope.wire.kinds import Flag

UTILS = "/job/utils.py"
SYSTEM = Frame("<frozen importlib._bootstrap>", "_find_and_load", 1, own=False)


def importing(own: int, framework: int = 0, *, steps: int = 0, used: float = 1.0, read: int = -1) -> Job:
    """``own`` ms in a module of the user's at line 2, ``framework`` ms in TensorFlow at line 3, then a loop.

    Args:
        own: milliseconds of the user's module.
        framework: of TensorFlow.
        steps: delay of the loop.
        used: share of the imports on the CPU.
        read: bytes from disks.
    """
    whole = (own + framework) * MS
    job = loading(whole + steps * MS)
    job.records = [record for record in job.records if record.start_ns >= whole]
    job.sources[SCRIPT] = "import os\nimport utils\nimport tensorflow\n" + "\n" * 60
    for at, name, line in ((0, "utils", 2), (own, "tensorflow", 3), (own + framework, "", 3)):
        file, cpu = UTILS if name == "utils" else "", round(used * at * MS) + 1
        where = ((SCRIPT, "<module>", line),)
        job.event(ImportAsked(at=at * MS, name=name, file=file, stack=where, cpu=cpu, read=-1 if name else read))
    job.framework(at=whole, dur=framework * MS)
    return job


FIXTURES = Fixtures(
    firing=lambda: importing(9_000, 3_000),
    expected=Expected(
        severity="high",
        cost=0.41,
        per_step=90_000_000,
        basis="modelled",
        where=(("train.py", 2), ("train.py", 3)),
        metrics=(
            "import_ratio",
            "import_ns",
            "framework_ns",
            "utils at train.py:2",
            "tensorflow at train.py:3",
            "part of start",
            "part of imports",
        ),
        title=("imports take", "utils 9 s (train.py:2)"),
        introduced="environment setting",
        exposed="initialization",
        pipeline_stage="none",
        remedy="work-out-of-import",
    ),
    silent=lambda: importing(500, 500),
    not_applicable=unsampled,
    missing="stack samples of any thread",
    below=lambda: importing(1_999),
    at=lambda: importing(2_001),
    edges={
        "min_blocked_ratio": Edge(
            below=lambda: importing(9_000, used=0.51, read=100 * MB),
            at=lambda: importing(9_000, used=0.49, read=100 * MB),
            shows="packages-on-a-local-disk",
        )
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def test_frameworks_alone_are_information() -> None:
    """A job needs them: their time is said, with the line, and nothing is proposed or claimed."""
    (found,) = (f for f in find(importing(100, 9_000)) if f.code == "INI002")
    assert (found.severity, found.remedies, found.cost.ratio) == ("info", (), 0.0)
    assert "tensorflow 9 s (train.py:3)" in found.title


def test_seconds_of_imports_in_a_long_run_are_information() -> None:
    """They are said, and no share of the run is claimed."""
    (found,) = (f for f in find(importing(2_500, steps=20_000)) if f.code == "INI002")
    assert (found.severity, found.cost.ratio, found.remedies[0].id) == ("info", 0.0, "work-out-of-import")


def test_a_finding_about_imports_explains_their_phases() -> None:
    """The general finding about the start and the imports does not say the same again."""
    report = report_of(importing(9_000, 3_000).session())
    entries = {entry.phase: entry for entry in report.ledger}
    assert {entries["start"].code, entries["imports"].code} == {"INI002"}
    assert "utils 9 s (train.py:2)" in entries["start"].text


def test_a_sleep_is_no_slow_disk() -> None:
    """What waits and reads next to nothing waits for something else."""
    (found,) = (f for f in find(importing(9_000, used=0.1, read=MB)) if f.code == "INI002")
    assert [remedy.id for remedy in found.remedies] == ["work-out-of-import", "import-less"]


def test_a_body_that_is_imported_is_an_import() -> None:
    """What a module does while the program imports it after the framework is no loading of the program's."""
    job = train_loop(20 * MS, offset=9_900 * MS)
    job.framework(at=10 * MS, dur=9 * MS)
    stack = Frame(SCRIPT, "<module>", MAKE), SYSTEM, Frame(UTILS, "<module>", 7)
    job.samples(range(0, 9_900 * MS, 495 * MS), *stack, dur=495 * MS, flags=int(Flag.CPU))
    job.samples([11 * S], Frame(SCRIPT, "main", CALL))
    (found,) = (f for f in find(job) if f.code.startswith("INI"))
    assert (found.code, found.severity, found.remedies[0].id) == ("INI002", "high", "work-out-of-import")
    assert (found.where[0].line, found.where[0].function) == (MAKE, "<module>")
