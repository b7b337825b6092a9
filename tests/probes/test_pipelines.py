"""What the tf.data probes record: construction with lines, the user's Python inside, iterators and their models."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

import pytest

from stepscope.model.log.events import (
    AgentDiagnostic,
    BatchSeen,
    DatasetMade,
    IteratorMade,
    IteratorModel,
    Probe,
    PyFunctionMade,
    Traced,
)
from stepscope.model.log.program import Padding
from stepscope.readers.iterator_model import parse
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.probes.conftest import Recorded

pytestmark = [pytest.mark.tf, pytest.mark.slow]


ROW_BYTES = 4 * 4 + 4
"""Of the program's rows: four floats and a label."""


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Any]) -> Any:
    """The program ``pipelines``."""
    return recorded("pipelines")


@pytest.fixture
def has_models(run: Any) -> bool:
    """Whether this TensorFlow has tf.data's model op (2.17 and later)."""
    return all(p.attached for p in run.all(Probe) if p.name == "tf_data_model")


def test_results_are_those_of_a_plain_run(run: Any) -> None:
    """The same output, and nothing of ours failed."""
    assert (run.result.returncode, run.result.stdout) == (0, run.plain.stdout), run.result.stderr
    assert run.all(AgentDiagnostic) == []


def made_at(run: Any, mark: str) -> list[DatasetMade]:
    """Datasets that the marked line made."""
    line = run.line(mark)
    return [d for d in run.all(DatasetMade) if d.line == line]


@pytest.mark.parametrize(
    ("mark", "cls", "values"),
    [
        ("slices", "TensorSliceDataset", {"cardinality": 64, "element_bytes": ROW_BYTES, "parts": 2}),
        ("map numpy", "ParallelMapDataset", {"parallel": 2, "parts": 2, "cardinality": 64, "fn_name": "through_numpy"}),
        ("filter", "FilterDataset", {"cardinality": -2, "fn_name": "<lambda>"}),
        ("shuffle", "ShuffleDataset", {"buffer": 16}),
        ("map eager", "MapDataset", {"fn_name": "through_eager"}),
        ("batch", "BatchDataset", {"batch": 8, "element_bytes": ROW_BYTES}),
        ("batch", "PrefetchDataset", {"buffer": -1}),
    ],
)
def test_each_transformation_has_its_line(run: Any, mark: str, cls: str, values: dict[str, Any]) -> None:
    """A dataset is told with the user's line, the function it was given, and its settings."""
    (made,) = [d for d in made_at(run, mark) if d.cls == cls]
    assert {key: getattr(made, key) for key in values} == values
    assert (made.file, made.function.rpartition(".")[2]) == (str(run.source), "make_dataset")
    assert made.stack[-1][2] == run.line(mark)


def test_chain_of_inputs(run: Any) -> None:
    """Each dataset names those that it reads."""
    marks = ("slices", "map numpy", "filter", "shuffle", "map eager", "batch")
    chain = [d for mark in marks for d in made_at(run, mark)]
    assert [d.inputs for d in chain[1:]] == [[d.id] for d in chain[:-1]]


def test_cardinalities_agree_with_tensorflow(run: Any) -> None:
    """What we derive without running an op is what ``cardinality()`` says, or unknown."""
    told = [int(text) for text in re.findall(r"^cardinality (-?\d+)$", run.result.stdout, re.MULTILINE)]
    made = [d for d in run.all(DatasetMade) if d.function.rpartition(".")[2] == "cardinalities"]
    last = {d.line: d.cardinality for d in made}
    first, slices, *others = last.values()
    assert (slices, [first, *others]) == (64, told)


@pytest.mark.parametrize(
    ("text", "role", "mark", "put"),
    [
        ("slow", "numpy_function", "numpy user", "put numpy"),
        ("eager_user", "py_function", "eager user", "put eager"),
        ("slower", "numpy_function", "partial user", "put partial"),
        ("<lambda>", "numpy_function", "put lambda", "put lambda"),
        ("batches", "generator", "generator user", "from generator"),
        ("endless", "generator", "endless user", "fit endless"),
        ("Items.__getitem__", "pydataset", "item user", "fit items"),
    ],
)
def test_python_in_the_pipeline(run: Any, text: str, role: str, mark: str, put: str) -> None:
    """User Python is recorded with its own lines, and with the line that put it into the pipeline."""
    calls = run.of(Kind.PYFUNC, text)
    assert calls, sorted({r.name.text for r in run.of(Kind.PYFUNC)})
    name = calls[0].name
    assert (name.role, name.own, name.file) == (role, True, str(run.source))
    assert name.converted == (text == "<lambda>")  # which is written inside of the map's function
    assert name.line <= run.line(mark) <= name.end_line
    told = [p for p in run.all(PyFunctionMade) if p.name == name.id]
    assert run.line(put) in {p.stack[-1][2] for p in told}


def test_python_in_the_pipeline_runs_elsewhere(run: Any) -> None:
    """Its records lie on tf.data's threads, not on the training thread."""
    training = {r.thread for r in run.of(Kind.LOOP)}
    assert training.isdisjoint({r.thread for r in run.of(Kind.PYFUNC, "slow")})
    ends = [r for r in run.of(Kind.PYFUNC, "batches") if r.flags & Flag.END]
    assert len(run.of(Kind.PYFUNC, "batches")) == 9
    assert len(ends) == 1


def test_batch_sizes_of_python_inputs(run: Any) -> None:
    """The batch size of generators and PyDatasets is what their first batch shows."""
    seen = {mark: run.loop(mark).start for mark in ("fit items", "fit endless", "fit generated", "fit quick")}
    found = {b.loop: (b.size, b.samples, b.steps) for b in run.all(BatchSeen)}
    assert found[seen["fit items"]] == (8, 64, 8)
    assert found[seen["fit endless"]] == (8, 32, 4)
    assert found[seen["fit generated"]][0] == 8
    assert found[seen["fit quick"]] == (8, 1200, 150)


def test_python_loop_over_a_dataset(run: Any) -> None:
    """One NEXT per element and one END, with the iterator's dataset and the line of the loop."""
    nexts = run.called(Kind.NEXT, "python loop")
    assert [bool(r.flags & Flag.END) for r in nexts] == [False] * 8 + [True]
    (iterator,) = [i for i in run.all(IteratorMade) if i.id == nexts[0].arg]
    (dataset,) = [d for d in run.all(DatasetMade) if d.id == iterator.dataset]
    assert (dataset.cls, iterator.batch) == ("PrefetchDataset", 8)


def test_loop_inside_a_function_makes_no_next(run: Any) -> None:
    """A loop over a dataset inside of a tf.function is one call, and no Python ``next``."""
    (call,) = run.of(Kind.FUNCTION, "loop_in_graph")
    assert run.within(call, Kind.NEXT) == []


def test_functions_of_the_pipeline_are_traced_for_it(run: Any) -> None:
    """Traces of map functions belong to tf.data and carry the user's line."""
    (trace,) = [t for t in run.all(Traced) if t.function == "through_numpy"]
    assert (trace.owner, trace.file, trace.line) == ("tf.data", str(run.source), run.line("map function"))


def models_of(run: Any, fit: Any) -> list[IteratorModel]:
    """Models read while ``fit`` ran."""
    return [m for m in run.all(IteratorModel) if fit.start <= m.at <= fit.end + 5_000_000]


def test_reads_of_a_model_carry_the_cpu_time_of_the_process(run: Any, has_models: bool) -> None:
    """It grows from read to read: what the stages do between two reads is a part of it."""
    reads = sorted((m for m in run.all(IteratorModel) if m.proto), key=lambda m: m.at)
    times = [m.cpu_ns for m in reads]
    assert times == sorted(times)
    assert all(time > 0 for time in times)
    assert bool(times) == has_models


def test_padding_is_told_with_the_line_that_pads(run: Recorded) -> None:
    """Lengths of padded sequences: at the line of pad_sequences, else where a dataset is made of them."""
    said = [(p.rows, p.columns, p.p95, p.line) for p in run.all(Padding)]
    assert said == [(64, 80, 10.0, run.line("pads")), (64, 96, 5.0, run.line("pads by hand"))]


@pytest.mark.alone
def test_models_split_the_wait_out_of_the_step(run: Any, has_models: bool) -> None:
    """The gaps of a fit that waits 6 ms a step for its generator, and of one that never waits."""
    if not has_models:
        pytest.skip("this TensorFlow has no IteratorGetModelProto")
    for mark, low, high in (("fit known", 0.5, 1.0), ("fit quick", 0.0, 0.3)):
        fit = run.loop(mark)
        executions = sorted(run.within(fit, Kind.EXECUTION), key=lambda r: r.start)
        last = [m for m in models_of(run, fit) if m.proto][-1]
        data = parse(base64.b64decode(last.proto))
        assert len(data.gaps_us) <= last.executions <= len(executions)
        seen = executions[: last.executions]
        window = seen[-len(data.gaps_us) - 1 :]
        wall = window[-1].start - window[0].start
        wait = 1 - sum(data.gaps_us) * 1000 / wall
        assert low - 0.05 <= wait <= high, (mark, wait)


def test_absence_of_models_is_told_once(run: Any, has_models: bool) -> None:
    """Autotune off, or a TensorFlow without the op, is an error line and not zero."""
    told = [m for m in run.all(IteratorModel) if m.error]
    if has_models:
        (absent,) = told
        assert absent in models_of(run, run.loop("fit untuned"))
        assert [m.error for m in run.all(IteratorModel) if m.iterator == absent.iterator] == ["no-model"]
    else:
        assert [m.error for m in told] == ["no-op"]
