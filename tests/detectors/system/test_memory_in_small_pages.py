"""MEM003 memory-in-small-pages: its fixtures, why there are no huge pages, and when they do not matter."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.memory_looks import BASE, HUGE, MB, look, row, walk_points
from tests.derive.sessions import MS, Job
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.fixture import look as said
from tests.detectors.jobs import train_loop
from tests.detectors.memory_jobs import SECONDS

from stepscope.detectors.system.memory_in_small_pages import DETECTOR
from stepscope.tables.address_space import FreeZone
from stepscope.tables.findings import Finding
from stepscope.tables.page_walks import PageWalks

GB = 1 << 30


def job(
    small: int = 2 * GB,
    *,
    huge: int = 0,
    before: float = 1.0,
    looks: int = 2,
    mode: str = "madvise",
    misses: float | None = None,
    **work: int,
) -> Job:
    """A loop whose process holds so much memory in small pages and in huge ones.

    Args:
        small: bytes that fill whole blocks in small pages.
        huge: bytes in huge pages.
        before: its memory until the middle of the steps, as a share.
        looks: number of looks.
        mode: the host's mode of huge pages.
        misses: share of the CPU time that counted TLB misses take at most; None: not counted.
        work: counters of the host that rose between the looks; ``huge_pages_allowed`` of the process.
    """
    made = train_loop(80 * MS)
    made.trace(0, MS, cause="first", updates=4)
    made.machine(SECONDS, got=1.0)
    late = np.arange(len(made.processes)) > SECONDS * 2 // 3
    resident = np.where(late, 1.0, before) * (small + huge)
    made.processes = replace(made.processes, rss_bytes=resident.astype(np.int64))
    pid = made.session().workers[0].info.pid
    rows = [row(BASE, small)]
    rows += [row(BASE + (1 << 40), huge, huge_bytes=huge, eligible=1)] if huge else []
    counted = {"cpu_ns": 10**9, "cycles": 1, "dtlb_load_misses": round((misses or 0.0) * 10**7)}
    last = look(rows, at_s=120, page_table_bytes=5 * MB, **work)
    first = look(rows, at_s=60, **dict.fromkeys(work, 0))
    last = replace(last, pid=pid, mode=mode, hardware=counted if misses is not None else {})
    made.resources["memory_looks"] = [replace(first, pid=pid, mode=mode), last][-looks:]
    made.resources["page_walks"] = PageWalks(points=walk_points(100.0, 100.0, *[100.0] * 20))
    return made


FIXTURES = Fixtures(
    firing=job,
    expected=Expected(
        severity="info",
        cost=0.0,
        where=(),
        metrics=("small_page_bytes", "small_page_ratio", "changed_ratio", "page_table_bytes"),
        title=(
            "2 GiB of 2 GiB of memory are in pages of 4 KiB, although huge pages would fit",
            "nothing requests them",
        ),
        introduced="environment setting",
        pipeline_stage="forward-backward",
        remedy="glibc-hugepages",
        basis="unknown",
    ),
    silent=lambda: job(huge=64 * GB),
    not_applicable=lambda: train_loop(80 * MS),
    missing="snapshots of memory",
    below=lambda: job(GB - HUGE),
    at=lambda: job(GB),
    edges={
        "min_ratio": Edge(below=lambda: job(2 * GB, huge=2 * GB + 2 * HUGE), at=lambda: job(2 * GB, huge=2 * GB)),
        "max_changed_ratio": Edge(below=lambda: job(before=0.9), at=lambda: job(before=0.92)),
        "min_bound_ratio": Edge(below=lambda: job(misses=0.0299), at=lambda: job(misses=0.0301)),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its thresholds."""
    claim(DETECTOR, FIXTURES)


def found(made: Job) -> Finding:
    """The finding of a job."""
    (only,), _ = said(DETECTOR, made)
    return only


@pytest.mark.parametrize(
    ("made", "why", "remedy"),
    [
        (job(mode="never"), "the host has switched them off", "allow-huge-pages"),
        (job(huge_pages_allowed=0), "they are disabled for this process", "allow-huge-pages"),
        (job(thp_fault_fallback=60, thp_fault_alloc=40), "the kernel has none to give", "compact-memory"),
        (job(thp_fault_fallback=40, thp_fault_alloc=60), "nothing requests them", "glibc-hugepages"),
        (job(mode="always"), "faulted in too early", "glibc-hugepages"),
    ],
    ids=["never", "disabled", "denied", "hardly denied", "early"],
)
def test_why_there_are_none(made: Job, why: str, remedy: str) -> None:
    """Each reason is told with the remedy that fits it."""
    only = found(made)
    assert why in only.title
    assert only.remedies[0].id == remedy


def test_fragmented_memory_is_evidence() -> None:
    """The kernel's index of a zone without a block stands beside the number of denied pages."""
    made = job(thp_fault_fallback=60)
    first, last = made.resources["memory_looks"]
    zones = (FreeZone(node=0, zone="Normal", blocks=(900, 50)), FreeZone(node=0, zone="DMA32", blocks=(0,) * 9 + (1,)))
    made.resources["memory_looks"] = [first, replace(last, zones=zones)]
    values = {e.metric: e.value for e in found(made).evidence}
    assert values["huge_pages_denied"] == 60
    assert values["fragmentation_ratio"] == pytest.approx(1 - (1 + 1000 / 512) / 950)


def test_the_cost_is_unknown_and_bounded() -> None:
    """It costs nothing that is known; at most what misses can take, else what random lookups have gained."""
    assert found(job()).cost.ratio == 0
    assert found(job()).cost.high == pytest.approx(1 / 3)
    counted = found(job(misses=0.2))
    assert counted.cost.high == pytest.approx(0.2)
    assert "TLB misses cannot explain more than 20 % of the time" in counted.explanation


def test_one_look_is_enough() -> None:
    """That memory is steady is seen from samples, not from looks; without samples nothing is said."""
    assert found(job(looks=1)).severity == "info"
    unsampled = job()
    unsampled.processes = unsampled.processes.take(slice(0, 3))
    assert said(DETECTOR, unsampled)[0] == ()


def test_an_unreadable_page_map_leaves_it_undecided() -> None:
    """It is not said to be clear."""
    made = job()
    *_, last = made.resources["memory_looks"]
    unknown = last.mappings.full_blocks * 0 - 1
    table = replace(last.mappings, full_blocks=unknown, part_blocks=unknown, block_pages=unknown)
    made.resources["memory_looks"] = [replace(last, mappings=table)]
    findings, checked = said(DETECTOR, made)
    assert (findings, checked.outcome) == ((), "undecided")
