"""Remedies are offered only where they can work: in every kept session, and in those written for the detectors."""

from __future__ import annotations

import ast
import importlib
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace as replaced
from tests.derive.sessions import MS, POOL, SCRIPT, Frame, Job
from tests.detectors.asking import find
from tests.detectors.fixture import Fixtures, look
from tests.detectors.jobs import PERIOD, STEPS, TF, eager, pulled, sampled
from tests.detectors.memory_jobs import faulting, refaulting

import stepscope
from stepscope import store
from stepscope.causes.system import translation
from stepscope.derive.view import SessionView
from stepscope.detectors import remedies
from stepscope.detectors.registry import EVERY
from stepscope.diagnosis import analyze
from stepscope.model.log.events import Framework
from stepscope.tables.allocator_info import AllocatorInfo
from stepscope.tables.findings import Finding, Remedy

TESTS = Path(__file__).resolve().parents[1]
DETECTORS = Path(stepscope.__file__).parent / "detectors"
SPOKEN = {
    "tensorflow": ("tf.", "TensorFlow", "AUTOTUNE", "TFRecord", "jit_compile", "interleave", "num_parallel_calls"),
    "keras": ("keras", "steps_per_execution", "validation_freq", "validation_batch_size", "PyDataset"),
    "torch": ("torch.", "DataLoader", "num_workers"),
    "jax": ("jax.",),
    "onnxruntime": ("SessionOptions", "ONNX Runtime"),
}
"""What only users of a library can follow."""
HAS = {"tensorflow": {"tensorflow", "jax"}, "keras": {"keras", "tensorflow"}}
"""Who has it beside the library itself: XLA's switch is JAX's too."""


def fixtures() -> Iterator[tuple[str, Fixtures]]:
    """The sessions of all detectors, by code."""
    for path in sorted((TESTS / "detectors").glob("*/test_*.py")):
        module = importlib.import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))
        yield module.DETECTOR.code, cast("Fixtures", module.FIXTURES)


def impossible(finding: Finding, imported: set[str]) -> list[str]:
    """Remedies in words of libraries of which the process has none."""
    found = []
    for remedy in finding.remedies:
        wanted = [name for name, words in SPOKEN.items() if any(word in remedy.text for word in words)]
        if wanted and not any(({name} | HAS.get(name, set())) & imported for name in wanted):
            found.append(f"{finding.code} {remedy.id}: {remedy.text}")
    return found


@pytest.mark.parametrize("name", ["torch", "jax", "onnxruntime", "numpy"])
def test_no_remedy_speaks_of_a_library_that_the_process_has_not(name: str) -> None:
    """All detectors on all sessions that are written for them, as if another framework had been imported."""
    found, said = [], 0
    for code, each in fixtures():
        job = each.firing()
        if job.mode == "import":
            continue
        job.events = [event for event in job.events if not isinstance(event, Framework)]
        job.framework(name, "1.0")
        for finding in look(next(d for d in EVERY if d.code == code), job)[0]:
            said += len(finding.remedies)
            found += impossible(finding, {name})
    assert found == []
    assert said > 50


def test_no_kept_session_is_offered_what_cannot_work() -> None:
    """The sessions of real jobs that are kept with the tests."""
    kept = sorted((TESTS / "data").glob("*/*.stepscope"))
    assert kept
    for path in kept:
        view = SessionView(store.open_session(path))
        has = remedies.libraries(view)
        assert has
        for finding in analyze.report_of_view(view).findings:
            assert impossible(finding, set(has)) == []


def test_every_condition_is_of_a_remedy_that_exists() -> None:
    """A row whose remedy was renamed would check nothing."""
    ids = {
        keyword.value.value
        for path in DETECTORS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Remedy"
        for keyword in node.keywords
        if keyword.arg == "id" and isinstance(keyword.value, ast.Constant)
    }
    assert set(remedies.CONDITIONS) <= ids


def test_the_first_remedy_that_is_left_is_no_alternative() -> None:
    """Where the first does not fit, the second begins the list."""
    job = sampled(before=50 * MS)
    job.framework("tensorflow", "2.21.0")
    view = job.view()
    offered = (Remedy(id="x", text="num_workers=4"), Remedy(id="y", text="or less"), Remedy(id="z", text="or none"))
    assert [one.text for one in remedies.fitting(view, offered)] == ["less", "or none"]


def ids(job: Job, code: str) -> list[str]:
    """The remedies of one finding."""
    return [one.id for one in next(found for found in find(job) if found.code == code).remedies]


def loop(framework: str, *, idle: float = 1.0, numpy: bool = False) -> Job:
    """A loop that makes its batches in Python, on two CPUs of which ``idle`` are idle."""
    job = sampled(before=50 * MS)
    job.framework(framework, "1.0")
    job.machine(10, cpus=2, got=1.0, others=1.0 - idle)
    if numpy:
        mean = Frame("/usr/lib/python3/site-packages/numpy/_core/_methods.py", "_mean", 120, own=False)
        job.samples([i * PERIOD + 30 * MS for i in range(STEPS)], Frame(SCRIPT, "main", 42), mean, dur=90 * MS)
    return job


def test_batches_of_a_loop_without_tensorflow() -> None:
    """No tf.data; another process where a CPU is idle; nothing is vectorised that is NumPy's own work already."""
    assert ids(loop("tensorflow"), "INP004")[0] == "use-tf-data"
    assert ids(loop("onnxruntime"), "INP004") == ["make-ahead", "vectorise"]
    assert ids(loop("onnxruntime", idle=0.2), "INP004") == ["vectorise"]
    assert ids(loop("onnxruntime", idle=0.2, numpy=True), "INP004") == ["less-in-numpy"]


READING = """\
def log(loss):
    return {how}

def step():
    with tape():
        loss = forward()
    log(loss)
"""


@pytest.mark.parametrize(
    ("how", "first"),
    [("loss.numpy()", "reads-out-first"), ("print(loss)", "use-tf-function"), ("np.numpy", "use-tf-function")],
)
def test_no_graph_is_made_around_what_reads_values(how: str, first: str) -> None:
    """Of the step's own function, or of one that it calls."""
    job = eager(49, 39)
    job.sources[SCRIPT] = READING.format(how=how)
    job.events = [
        replaced(e, frames=[(code, 5) for code, _ in e.frames]) if hasattr(e, "frames") else e for e in job.events
    ]
    assert ids(job, "HST002") == [first]


def mapped(below: Frame, *, wrapped: bool) -> Job:
    """Steps that wait for Python of a map, which is sampled in ``collate``; ``wrapped``: a library calls that."""
    job = pulled(60 * MS, python=58 * MS, role="py_function")
    if wrapped:
        file = "/usr/lib/python3/site-packages/datasets/utils/tf_utils.py"
        job.events = [
            replaced(e, own=False, file=file, line=70, end_line=75) if getattr(e, "role", "") else e for e in job.events
        ]
    job.samples(
        [i * PERIOD + 30 * MS for i in range(STEPS)],
        Frame(SCRIPT, "collate.<locals>.<listcomp>", 16),
        below,
        thread=POOL,
    )
    return job


OP = Frame(f"{TF}/ops/gen_array_ops.py", "pad_v2", 6000, own=False)
PLAIN = Frame("/usr/lib/python3/json/decoder.py", "decode", 330, own=False)


def test_python_that_calls_tensorflow_s_ops_is_not_to_be_written_with_them() -> None:
    """It goes into the graph, or works with NumPy where a library calls it; other Python is written with ops."""
    assert ids(mapped(PLAIN, wrapped=False), "INP002")[0] == "use-tensorflow-ops"
    assert ids(mapped(OP, wrapped=False), "INP002")[:2] == ["ops-in-graph", "numpy-in-python"]
    assert ids(mapped(OP, wrapped=True), "INP002")[0] == "numpy-in-python"


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_user_s_function_is_the_place_not_the_wrapper(*, wrapped: bool) -> None:
    """And it is named first; the wrapper is told beside it."""
    found = next(f for f in find(mapped(OP, wrapped=wrapped)) if f.code == "INP002")
    assert (found.where[0].file, found.where[0].line) == ("train.py", 16 if wrapped else 15)
    assert found.title.startswith("collate, called by decode," if wrapped else "decode runs")


def test_nothing_is_withheld_where_nothing_is_known() -> None:
    """A file of stacks does not say what its process had."""
    job = sampled(before=50 * MS)
    job.mode = "import"
    offered = (Remedy(id="x", text="num_workers=4"), Remedy(id="y", text="tf.data"))
    assert remedies.fitting(job.view(), offered) == offered


LOOKED_AT = {"always": False, "madvise": True, "never": False, "": True}
"""Modes of huge pages, "" where nothing is known, with whether torch's tensors get them by request alone."""


@pytest.mark.parametrize("mode", LOOKED_AT)
@pytest.mark.parametrize(
    ("framework", "name", "ids"),
    [
        ("torch", "glibc", ["glibc-hugepages"]),
        ("torch", "jemalloc", ["torch-hugepages"]),
        ("tensorflow", "glibc", []),
    ],
)
def test_tensors_of_pytorch_get_huge_pages_where_these_are_on_request(
    monkeypatch: pytest.MonkeyPatch, framework: str, name: str, ids: list[str], mode: str
) -> None:
    """A remedy that needs not be known what returns the memory; other libraries' tensors do not get them so."""
    pages = [types.SimpleNamespace(pid=100, mode=mode, allowed=True)] if mode else []
    monkeypatch.setattr(translation, "maps", lambda view: tuple(pages))
    job = refaulting(0.4)
    job.framework(framework)
    job.allocator = AllocatorInfo(name=name, how="default")
    (found,) = (f for f in find(job) if f.code == "MEM002")
    assert [r.id for r in found.remedies] == [*(ids if LOOKED_AT[mode] else []), "find-the-allocator"]


@pytest.mark.parametrize(
    ("job", "offered"), [(lambda: refaulting(0.4), True), (lambda: faulting(lambda _: 60, on_host=1.0), False)]
)
def test_huge_pages_are_not_advised_where_most_memory_has_them(job: Callable[[], Job], *, offered: bool) -> None:
    """A few of a neighbour's are no reason, as the counter is the host's."""
    mine = job()
    mine.framework("torch")
    found = [f for f in find(mine) if f.code == "MEM002"]
    assert [any(r.id.endswith("-hugepages") for r in f.remedies) for f in found] == [offered]


@pytest.mark.parametrize(("framework", "tried"), [("jax", True), ("tensorflow", False)])
def test_a_setting_of_malloc_is_a_trial_where_it_serves_the_tensors(framework: str, tried: bool) -> None:
    """What returns the memory is not known, which comes first. A JAX program took 13.1 s with it and 15.3 s without."""
    job = refaulting(0.4)
    job.framework(framework, "2.13.0")
    job.allocator = AllocatorInfo(name="glibc", how="default")
    (found,) = (one for one in find(job) if one.code == "MEM002")
    assert [one.id for one in found.remedies] == ["find-the-allocator", *(["glibc-keep"] if tried else [])]
