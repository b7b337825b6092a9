"""MEM002 steady-page-faults: its fixtures, and what looks like it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest
from tests.derive import memory_events as seen
from tests.derive.sessions import MS, Job, S
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.jobs import PERIOD, train_loop
from tests.detectors.memory_jobs import FAULT_NS, HUGE_FAULT_NS, HUGE_RELEASE_NS, RELEASE_NS, faulting, refaulting

from stepscope.derive.view import SessionView
from stepscope.detectors.base import run
from stepscope.detectors.registry import ALL
from stepscope.detectors.system.steady_page_faults import DETECTOR
from stepscope.model.log.events import DatasetMade, Framework, InferenceSession
from stepscope.report import words
from stepscope.tables.allocator_info import AllocatorInfo
from stepscope.tables.findings import Checked, Finding
from stepscope.tables.stacks import Frame, StackProfile

ROUNDING = 1e-4
"""Faults are whole."""
FIXTURES = Fixtures(
    firing=lambda: refaulting(0.4),
    expected=Expected(
        severity="high",
        cost=0.4 * (FAULT_NS + RELEASE_NS) / FAULT_NS,
        where=(),
        metrics=("fault_ratio", "lasting_ratio", "faults_per_step", "fault_ns", "system_ratio", "kept_ratio"),
        title=("25,000 page faults in every step", "40 % of the CPU time"),
        introduced="unknown",
        pipeline_stage="forward-backward",
        remedy="find-the-allocator",
        basis="modelled",
    ),
    silent=lambda: faulting(lambda second: 60_000 if second < 3 else 0),
    not_applicable=lambda: train_loop(80 * MS),
    missing="counts of page faults",
    below=lambda: refaulting(0.01 - ROUNDING),
    at=lambda: refaulting(0.01 + ROUNDING),
    edges={"min_ratio": Edge(below=lambda: refaulting(0.0885), at=lambda: refaulting(0.0895), shows="medium")},
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def look(job: Job) -> tuple[list[Finding], Checked]:
    """What is said of page faults in a job, all detectors run."""
    findings, checked, failures = run(ALL, job.view())
    assert failures == ()
    (mine,) = (c for c in checked if c.detector == "MEM002")
    return [f for f in findings if f.code == "MEM002"], mine


@pytest.mark.parametrize(
    "job",
    [
        lambda: faulting(lambda second: 50_000 if second < 2 else 10),
        lambda: faulting(lambda second: 50_000 if second == 5 else 0),
        lambda: faulting(lambda second: 50_000 if second in {2, 6} else 0),
        lambda: faulting(lambda second: 50_000 if second >= 8 else 0),
    ],
    ids=["warm-up", "one-burst", "two-bursts", "only-at-the-end"],
)
def test_faults_that_do_not_last_are_clear(job: Callable[[], Job]) -> None:
    """Faults of a warm-up, of a burst now and then or of the end are not faults of every step."""
    findings, checked = look(job())
    assert findings == []
    assert checked.outcome == "clear"


def test_memory_that_grows_is_another_detectors() -> None:
    """Pages that come to stay are a leak or a cache that fills, not memory that is given back."""
    findings, checked = look(refaulting(0.3, kept=1.0))
    assert findings == []
    assert checked.outcome == "clear"


def test_the_kernels_time_bounds_the_share() -> None:
    """Where a fault costs the job less than it cost the collector, the time in the kernel is what counts."""
    (found,), _ = look(refaulting(0.4, system=0.5))
    values = {e.metric: e.value for e in found.evidence}
    assert values["fault_ratio"] == pytest.approx(values["system_ratio"], rel=0.01)
    assert found.cost.ratio == pytest.approx(0.225, abs=0.01)


def test_few_percent_are_information() -> None:
    """From 1 to 3 % of the time they are told with their number, above nothing else, and ask for no window."""
    (found,), checked = look(refaulting(0.02))
    assert (found.severity, checked.outcome, checked.capture) == ("info", "found", "")
    assert found.cost.ratio == pytest.approx(0.0225, abs=0.001)
    assert "1,250 page faults in every step take 2.0 % of the CPU time" in found.title


def test_less_than_a_tenth_is_no_finding_before_its_cause_is_known() -> None:
    """The lower bound of what a remedy brings is below what counts; a window that would tell is asked for."""
    (found,), checked = look(refaulting(0.06))
    assert (found.severity, found.cause, checked.capture) == ("info", "unknown", "native")


def churning(system: float = 1.0, on_host: float = 1.0) -> Job:
    """Sixty faults in each step of 100 ms, of huge pages where the host gives that many."""
    return faulting(lambda _: 60, system=system, on_host=on_host)


def test_faults_of_huge_pages_cost_what_they_cost() -> None:
    """A few faults a step that zero 2 MiB each are no few microseconds: found, with the number of both kinds."""
    (found,), checked = look(churning())
    values = {e.metric: e.value for e in found.evidence}
    assert "60 page faults in every step (60 of huge pages)" in found.title
    assert (round(values["faults_per_step"]), round(values["huge_faults_per_step"])) == (60, 60)
    assert values["fault_ratio"] == pytest.approx(60 * HUGE_FAULT_NS / PERIOD, rel=0.01)
    assert found.cost.ratio == pytest.approx(60 * (HUGE_FAULT_NS + HUGE_RELEASE_NS) / PERIOD, rel=0.01)
    assert checked.capture == "native"
    assert look(churning(on_host=0.0))[0] == []
    (half,), _ = look(faulting(lambda _: 200, on_host=0.5))
    assert "200 page faults in every step (100 of huge pages)" in half.title


def test_a_neighbours_huge_pages_cost_no_more_than_the_jobs_time_in_the_kernel() -> None:
    """The host gives more huge pages than the job makes faults, and the job spends hardly any time in the kernel."""
    findings, checked = look(churning(system=0.02, on_host=50.0))
    assert (findings, checked.outcome) == ([], "clear")


def test_the_interval_holds_what_remedies_brought() -> None:
    """A remedy brings less than the share, or more: 66 % of the step where 51 % were faults and 9 % releases."""
    (found,), _ = look(refaulting(0.53))
    assert found.cost.ratio == pytest.approx(0.6, abs=0.01)
    assert found.cost.low <= 0.3 * 0.61
    assert found.cost.high >= 0.7
    assert "at most" not in found.explanation


def test_a_job_that_mostly_waits_loses_little_wall_time() -> None:
    """Half of the CPU time of a process that runs a tenth of the time is a twentieth of the wall time."""
    (found,), _ = look(faulting(lambda _: 3_125, got=0.1))
    assert {e.metric: e.value for e in found.evidence}["fault_ratio"] == pytest.approx(0.5, abs=0.01)
    assert found.cost.ratio == pytest.approx(0.05 * 1.125, abs=0.005)


def test_a_starved_job_is_told_with_less_confidence() -> None:
    """Neighbours that take the CPU lower the confidence, not the count."""
    (alone,), _ = look(refaulting(0.4))
    (starved,), _ = look(refaulting(0.4, others=1.0, waiting=1.5))
    assert starved.confidence < alone.confidence


def test_without_a_measured_cost_nothing_is_claimed() -> None:
    """Nobody measured what a fault costs on this host: not applicable, and not a guess."""
    _, checked = look(refaulting(0.4, rounds=2))
    assert checked.outcome == "not-applicable"
    assert checked.missing == ("counts of page faults",)


LIBC_FREE = [
    *seen.native("start_thread", "tensorflow::Buffer<float>::~Buffer()"),
    *seen.native("__libc_free", "__munmap", module="/usr/lib/libc.so.6"),
]
MADVISED = [(5, seen.MADVISE, seen.BLOCK, seen.SIZE, 4), *seen.faults(60)]
UNMAPPED = [
    (5, seen.MUNMAP, seen.BLOCK, seen.SIZE, 0),
    (6, seen.MMAP, seen.BLOCK, seen.SIZE, 0),
    *seen.faults(60),
]
IN_STEPS = 5 * S
"""A moment of the steady steps."""


def in_steps(event: str, stacks: Sequence[tuple[Sequence[Frame], float]]) -> StackProfile:
    """Samples at that moment."""
    profile = seen.profile(event, stacks)
    return msgspec.structs.replace(
        profile, samples=msgspec.structs.replace(profile.samples, at_ns=profile.samples.at_ns + IN_STEPS)
    )


@pytest.mark.parametrize(("rows", "call"), [(UNMAPPED, "munmap"), (MADVISED, "madvise(MADV_DONTNEED)")])
@pytest.mark.parametrize("released", [10, 0])
def test_without_stacks_of_the_calls(rows: list[seen.Row], call: str, released: int) -> None:
    """Without tracefs the call is known, and who makes it if samples of the CPU lie in it: else no allocator is."""
    found = look_with_window(rows, free=LIBC_FREE, name="glibc", recorded=False, released=released)
    who = "the C library's malloc returns memory" if released else "memory is returned"
    assert f"{who} with {call}, and" in found.title
    assert (f"what calls {call}" in found.remedies[-1].text) is (released == 0)


def look_with_window(
    rows: list[seen.Row],
    *,
    free: list[Frame],
    name: str,
    framework: Framework | InferenceSession | None = None,
    dataset: DatasetMade | None = None,
    recorded: bool = True,
    released: int = 10,
) -> Finding:
    """What is said of a faulting job with a window of stacks: faults of a copy, memory given back by ``free``, in calls
    that perf has ``recorded``, with so many samples of the CPU in them."""
    job = refaulting(0.4)
    job.event(framework or Framework(name="tensorflow", version="2.21.0", detail="oneDNN off"))
    if isinstance(framework, InferenceSession):
        job.framework("onnxruntime", "1.23.0")
    if dataset is not None:
        job.event(dataset)
    session = job.session()
    (worker,) = session.workers
    info = msgspec.structs.replace(worker.info, allocator=AllocatorInfo(name=name, how="preloaded"))
    call = "madvise" if rows is MADVISED else "munmap"
    session = msgspec.structs.replace(
        session,
        workers=(msgspec.structs.replace(worker, info=info),),
        memory_events=seen.events([(IN_STEPS + at, kind, a, b, detail) for at, kind, a, b, detail in rows]),
        stacks=(
            in_steps("page-faults", [(seen.COPY, 100)]),
            *([in_steps(call, [(free, 10)])] if recorded else []),
            in_steps(
                "cpu",
                [([*seen.COPY, *seen.kernel("asm_exc_page_fault")], 1)] * 30
                + [([*free, *seen.kernel(f"__x64_sys_{call}")], 1)] * released
                + [(seen.COPY, 1)] * 60,
            ),
        ),
    )
    findings, checked, failures = run(ALL, SessionView(session))
    assert failures == ()
    (outcome,) = (c for c in checked if c.detector == "MEM002")
    assert (outcome.outcome, outcome.capture) == ("found", "")
    (found,) = (f for f in findings if f.code == "MEM002")
    return found


def test_a_window_clears_a_job_of_its_neighbours_huge_pages() -> None:
    """Where samples of the CPU show no page fault, what the counters of the whole host allow is not claimed."""
    recorded = churning().session()
    window = msgspec.structs.replace(
        recorded,
        memory_events=seen.events([(IN_STEPS + at, kind, a, b, detail) for at, kind, a, b, detail in MADVISED]),
        stacks=(
            in_steps("page-faults", [(seen.COPY, 100)]),
            in_steps("cpu", [([*seen.COPY, *seen.kernel("do_syscall_64")], 1)] * 30 + [(seen.COPY, 1)] * 70),
        ),
    )
    findings, checked, failures = run(ALL, SessionView(window))
    assert failures == ()
    assert [f for f in findings if f.code == "MEM002"] == []
    assert next(c.outcome for c in checked if c.detector == "MEM002") == "clear"


def test_a_process_that_was_attached_to() -> None:
    """Without steps faults count by the second, and the stage that is slow is not known."""
    job = refaulting(0.4)
    job.records.clear()
    session = job.session()
    manifest = msgspec.structs.replace(session.manifest, mode="attach")
    findings, _, failures = run(ALL, SessionView(msgspec.structs.replace(session, manifest=manifest)))
    assert failures == ()
    (found,) = (f for f in findings if f.code == "MEM002")
    assert "250,000 page faults a second" in found.title
    assert (found.exposed_stage, found.pipeline_stage) == ("unknown", "none")
    assert words.cost_text(found.cost, between_steps=words.is_between_steps(found)).endswith("of the run time")
    assert "faults_per_second" in [e.metric for e in found.evidence]
    assert words.cost_text(found.cost, between_steps=words.is_between_steps(found)).endswith("of the run time")
    assert "in every step" not in found.explanation


def test_a_run_without_steps_is_not_looked_at() -> None:
    """What a job that never repeats anything faults in may all be its start."""
    job = refaulting(0.4)
    job.records.clear()
    _, checked = look(job)
    assert checked.outcome == "not-applicable"


def test_without_a_window_one_is_asked_for() -> None:
    """Counters alone find it; who faults is not known, and that is said with how to know it."""
    (found,), checked = look(refaulting(0.4))
    assert found.cause == "unknown"
    assert (checked.outcome, checked.capture) == ("found", "native")
    assert "stepscope trace JOB --kind native" in checked.hint


def test_a_window_names_call_code_and_allocator() -> None:
    """Jemalloc's madvise: who faults, by which call, the cost by samples, and a remedy that can be applied."""
    found = look_with_window(MADVISED, free=seen.FREE, name="jemalloc")
    assert "jemalloc returns memory with madvise(MADV_DONTNEED), and " in found.title
    assert "__memmove_avx512 in tensorflow::ConcatCPU" in found.title
    assert (found.cause, found.introduced_stage) == ("System: allocator", "environment setting")
    assert found.cost.ratio == pytest.approx(0.4, abs=0.02)
    assert found.cost.basis == "measured"
    assert [r.id for r in found.remedies] == ["jemalloc-keep", "glibc-malloc", "onednn-pool"]
    assert found.remedies[0].what_if == "stepscope whatif --try jemalloc-keep -- python train.py"
    assert "tensorflow::Buffer::~Buffer" in found.explanation


def test_the_c_librarys_munmap() -> None:
    """Large blocks of glibc's: its own knob first."""
    found = look_with_window(UNMAPPED, free=LIBC_FREE, name="glibc")
    assert "the C library's malloc returns memory with munmap" in found.title
    assert [r.id for r in found.remedies] == ["glibc-keep", "preload-jemalloc", "onednn-pool"]


def test_the_pool_is_not_advised_where_it_is_on() -> None:
    """What faults is not TensorFlow's tensors then."""
    on = Framework(name="tensorflow", version="2.21.0", detail="oneDNN on")
    found = look_with_window(UNMAPPED, free=LIBC_FREE, name="glibc", framework=on)
    assert "onednn-pool" not in [r.id for r in found.remedies]


@pytest.mark.parametrize("arena", [True, False])
def test_the_arena_of_onnx_runtime(*, arena: bool) -> None:
    """A session without it is the first to change; where it is on, it is not what gives memory back."""
    made = InferenceSession(model="bert.onnx", arena=arena, file="/job/serve.py", line=12)
    found = look_with_window(UNMAPPED, free=LIBC_FREE, name="glibc", framework=made)
    own = [r for r in found.remedies if r.id == "onnxruntime-arena"]
    assert ([r.id for r in found.remedies[1:]] if own else [r.id for r in found.remedies]) == [
        "glibc-keep",
        "preload-jemalloc",
    ]
    assert [place.line for place in found.where] == ([] if arena else [12])
    assert ["bert.onnx at serve.py:12" in r.text for r in own] == ([] if arena else [True])


@pytest.mark.parametrize("framework", [None, Framework(name="torch", version="2.13.0")])
def test_another_cause_changes_no_allocator(framework: Framework | None) -> None:
    """Pages of files are no allocator's doing: said, and no knob is advised."""
    rows = [(5, seen.MADVISE, seen.BLOCK, 1, 4), *seen.faults(60, mapped=4)]
    found = look_with_window(rows, free=LIBC_FREE, name="glibc", framework=framework)
    assert found.cause == "unknown"
    assert "file" in found.title
    assert [r.id for r in found.remedies] == ["find-the-allocator"]


def generating(
    version: str = "2.21.0", *, pool: str = "off", name: str = "glibc", cls: str = "GeneratorDataset"
) -> Job:
    """A faulting job that reads from a generator dataset made at line 70 of the script."""
    job = refaulting(0.4)
    job.event(Framework(name="tensorflow", version=version, detail=f"oneDNN {pool}"))
    job.dataset(cls, line=70)
    job.allocator = AllocatorInfo(name=name, how="default")
    return job


def test_a_generator_dataset_that_pins_the_threshold_is_named() -> None:
    """TensorFlow's own mallopt call is the cause where malloc serves the tensors: said with the line, and a remedy."""
    (found,), checked = look(generating())
    assert "generator dataset keeps the C library from reusing blocks above 128 KiB" in found.title
    assert (found.cause, found.introduced_stage) == ("System: allocator", "environment setting")
    assert [place.line for place in found.where] == [70]
    assert [r.id for r in found.remedies] == ["glibc-keep", "preload-jemalloc", "onednn-pool"]
    assert (checked.outcome, checked.capture) == ("found", "native")


@pytest.mark.parametrize(
    "job",
    [
        lambda: generating("2.20.0"),
        lambda: generating(pool="on"),
        lambda: generating(name="jemalloc"),
        lambda: generating(cls="MapDataset"),
    ],
    ids=["older", "tensors-in-the-pool", "another-allocator", "no-generator"],
)
def test_a_generator_dataset_is_not_always_to_blame(job: Callable[[], Job]) -> None:
    """A version without the call, tensors that malloc does not serve, another malloc, another dataset."""
    (found,), _ = look(job())
    assert found.cause == "unknown"
    assert [r.id for r in found.remedies] == ["find-the-allocator"]


@pytest.mark.parametrize(("size", "named"), [(1 << 20, True), (64 << 10, False), (48 << 20, False)])
@pytest.mark.parametrize("recorded", [True, False])
def test_a_window_says_whether_the_threshold_matters(size: int, *, named: bool, recorded: bool) -> None:
    """The C library keeps blocks up to 32 MiB unless its threshold is pinned; it maps larger ones anew by itself."""
    rows = [(5, seen.MUNMAP, seen.BLOCK, size, 0), (6, seen.MMAP, seen.BLOCK, size, 0), *seen.faults(60)]
    made = DatasetMade(id=9, cls="GeneratorDataset", file="/job/train.py", line=70)
    found = look_with_window(rows, free=LIBC_FREE, name="glibc", dataset=made, recorded=recorded, released=0)
    assert ("generator dataset makes it do so" in found.title) == named
    assert ([place.line for place in found.where] == [70]) == named


def test_maps_alone_show_it_where_calls_cannot_be_read() -> None:
    """Without system calls in the window, memory that does not grow and is mapped anew in each step is unmapped too."""
    rows = [(5, seen.MMAP, seen.BLOCK, 1 << 20, 0), *seen.faults(60)]
    made = DatasetMade(id=9, cls="GeneratorDataset", file="/job/train.py", line=70)
    found = look_with_window(rows, free=LIBC_FREE, name="glibc", dataset=made)
    assert "maps every block above 128 KiB again, because of TensorFlow's generator dataset" in found.title
    assert [r.id for r in found.remedies] == ["glibc-keep", "preload-jemalloc", "onednn-pool"]
    assert look_with_window(rows, free=LIBC_FREE, name="glibc").cause == "unknown"
