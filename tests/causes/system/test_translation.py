"""The most that TLB misses can cost: from what the traced ops work on, and what a miss costs here."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from tests.derive.memory_looks import BASE, MB, look, row, walk_points
from tests.derive.memory_looks import GOOD_WALKS as GOOD
from tests.derive.sessions import Job
from tests.detectors.replay_jobs import replayed

from stepscope.causes.system import translation
from stepscope.derive.view import SessionView
from stepscope.model.report.machine.memory_map import MemoryMap, Translation
from stepscope.model.session.replays import Recipe, ReplayInput, ReplayNode, Tensor
from stepscope.report.memory import memory_text, memory_words
from stepscope.tables.page_walks import PageWalks

STEP_US = 100_000.0
FLOATS = 1024
"""In a page."""


def traced(spent_us: float, walks: PageWalks | None = GOOD, megabytes: int = 100) -> Job:
    """A job whose product of 128 x 512 x 256 takes so much of each step of 100 ms, with memory in small pages."""
    job = replayed(spent_us)
    pid = job.session().workers[0].info.pid
    job.resources["memory_looks"] = [replace(look([row(BASE, megabytes * MB)]), pid=pid)]
    job.resources["page_walks"] = walks
    return job


def told(job: Job) -> MemoryMap:
    """The address space of a job's process."""
    (found,) = translation.maps(SessionView(job.session()))
    return found


def seen(job: Job) -> Translation:
    """What is known of its misses."""
    found = told(job).translation
    assert found is not None
    return found


def recipe(kind: str, *shapes: tuple[int, ...], dtype: str = "float32") -> Recipe:
    """An op of inputs and an output of these shapes."""
    *inputs, output = shapes
    given = tuple(ReplayInput(dtype=dtype, shape=shape) for shape in inputs)
    node = ReplayNode(type=kind, inputs=tuple((-1 - i, 0) for i in range(len(inputs))))
    return Recipe(inputs=given, nodes=(node,), output=Tensor(dtype=dtype, shape=output))


def test_a_bound_from_the_ops() -> None:
    """The product's pages, three times over, and its blocks, times the cost of a miss; nothing else of a step ran."""
    found = seen(traced(90_000.0))
    pages = 64 + 1 + 128 + 1 + 32 + 1
    blocks = 2 * 128 * 512 * 256 / 32 / 4096
    assert found.misses_per_step == pytest.approx(3 * pages + blocks)
    assert found.walk_ns == 240.0
    assert found.known_ratio == pytest.approx(0.9, abs=0.01)
    assert found.known_lost_ratio == pytest.approx((3 * pages + blocks) * 65.0 / (STEP_US * 1000), rel=0.01)
    assert found.ratio == pytest.approx(found.known_lost_ratio + 1.0 - found.known_ratio, abs=0.001)


def test_time_that_is_not_known_could_all_be_misses() -> None:
    """Where the known ops are less than half of the time that ran, nothing is bounded, and that is said."""
    few = told(traced(30_000.0))
    assert few.translation is not None
    assert few.translation.ratio is None
    (text, remedy) = memory_words.translation(few)
    assert "cannot be bounded here: a miss costs at most 240 ns with 100 MiB in small pages" in text
    assert "30 % of the steps, they could take 0.1 % of the steps, and of the rest nothing is known" in text
    assert "whatif --try glibc-hugepages" in remedy
    (much,) = memory_words.translation(told(traced(90_000.0)))
    assert much.startswith("they cannot explain more than 10 % of the time of the steps")


def test_a_dear_miss_is_at_most_the_ops_time() -> None:
    """What misses could cost is cut at the time that the op took."""
    dear = PageWalks(points=walk_points(1e9))
    found = seen(traced(90_000.0, dear))
    assert found.known_lost_ratio == pytest.approx(found.known_ratio)
    assert found.ratio is None


def test_memory_in_huge_pages_does_not_count() -> None:
    """What a miss costs depends on the memory in small pages alone."""
    job = traced(90_000.0)
    (only,) = job.resources["memory_looks"]
    table = replace(only.mappings, huge_bytes=only.mappings.rss_bytes - 2 * MB)
    job.resources["memory_looks"] = [replace(only, mappings=table)]
    assert (seen(job).small_bytes, seen(job).walk_ns) == (2 * MB, 1.0)


def test_without_a_measurement_nothing_is_told() -> None:
    """A session of an older stepscope, or a machine where it failed, has no such line."""
    for walks in (None, PageWalks(problem="no")):
        one = told(traced(90_000.0, walks))
        assert one.translation is None
        assert "TLB" not in memory_text.render([one])


def test_without_a_trace_only_the_cost_of_a_miss_is_known() -> None:
    """A running process, or a job without an op trace."""
    one = translation.unbounded(told(traced(90_000.0, None)), GOOD)
    assert "no time is known to be in ops" in memory_text.render([one], width=300)


def test_counted_misses_are_the_answer() -> None:
    """Where the processor counts, the share is that of the CPU time, whatever the ops are; 2 million x 240 ns."""
    job = traced(90_000.0)
    (only,) = job.resources["memory_looks"]
    counted = {"cpu_ns": 10**9, "cycles": 10**9, "dtlb_load_misses": 2 * 10**6}
    job.resources["memory_looks"] = [replace(only, hardware=counted)]
    found = seen(job)
    assert found.counted
    assert found.ratio == pytest.approx(0.48)
    (text,) = memory_words.translation(told(job))
    assert text.startswith("they cannot explain more than 48 % of the CPU time, as counted")


@pytest.mark.parametrize(
    ("op", "in_order", "scattered"),
    [
        (recipe("Relu", (4 * FLOATS,), (4 * FLOATS,)), 3 * 10, 0),
        (recipe("Transpose", (FLOATS, 2), (2, FLOATS)), 3 * 6, 2 * FLOATS),
        (recipe("GatherV2", (10 * FLOATS, 64), (8,), (8, 64)), 3 * (641 + 1 + 1), 8),
        (recipe("GatherV2", (10, 4 * FLOATS), (8,), (8, 4 * FLOATS)), 3 * (41 + 1 + 33), 8 * 5),
        (recipe("GatherV2", (10, 4 * FLOATS), (8,), (10, 8)), 3 * (41 + 1 + 1), 80),
        (recipe("UnsortedSegmentSum", (100, 64), (100,), (3, 64)), 3 * (7 + 1 + 1), 100),
    ],
    ids=["in order", "each element", "short rows", "long rows", "columns", "sums"],
)
def test_misses_by_type(op: Recipe, in_order: int, scattered: int) -> None:
    """Pages in order are counted by their bytes; looked-up rows and scattered elements each miss."""
    found = translation.misses(op)
    assert found.in_order == pytest.approx(in_order, abs=1)
    assert found.scattered == scattered


def test_columns_looked_up_are_scattered() -> None:
    """If as many columns are looked up as there are, only the axis shows that no row lies together."""
    plain = recipe("GatherV2", (10, 64), (64,), (1,), (10, 64))
    assert translation.misses(plain).scattered == 10
    *others, axis = plain.inputs
    columns = msgspec.structs.replace(plain, inputs=(*others, msgspec.structs.replace(axis, values=(1,))))
    assert translation.misses(columns).scattered == 640
