"""What the probes record of PyTorch: with modules that behave as its do, and with PyTorch where it is installed."""

from __future__ import annotations

import contextlib
import subprocess
import types
from typing import TYPE_CHECKING

import pytest
from tests.probes.conftest import PYTHON

from stepscope.agent.probes.torch import data_loaders, optimizer_steps
from stepscope.model.log.events import AgentDiagnostic, IteratorMade, Probe
from stepscope.model.log.program import DataLoaderMade
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stepscope.agent.core.foreign import Foreign

    Run = Foreign
    """A ``Recorded`` of conftest."""


class _State:
    """What the probes need of the agent's state; keeps what they write."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Foreign]] = []
        self.written: list[tuple[int, ...]] = []
        self.names: dict[Foreign, int] = {}
        self.duty_cycle = types.SimpleNamespace(light=lambda kind, original: original)
        self.clock = 0
        self.undone: list[tuple[Foreign, str, Foreign]] = []

    def now(self) -> int:
        self.clock += 10
        return self.clock

    def write(self, *record: int) -> None:
        self.written.append(record)

    def thread(self) -> int:
        return 1

    def log(self, line: dict[str, Foreign]) -> None:
        self.lines.append(line)

    def name(self, key: object, text: str, **fields: object) -> int:
        number: int = self.names.setdefault((key, text), len(self.names) + 1)
        return number

    def new_id(self, what: str) -> int:
        return 1 + len([line for line in self.lines if line["t"] == what])

    def guard(self, where: str) -> Foreign:
        return contextlib.nullcontext()

    def patch(self, owner: Foreign, attribute: str, replacement: Foreign, hot: Foreign = None) -> None:
        self.undone.append((owner, attribute, owner.__dict__[attribute]))
        setattr(owner, attribute, replacement)


def test_without_the_hook_the_probe_says_so() -> None:
    """An older PyTorch: no steps, and the log says why."""
    state: Foreign = _State()
    module: Foreign = types.SimpleNamespace()
    optimizer_steps.attach(state, module)
    (line,) = state.lines
    assert (line["attached"], "does not exist" in line["why"]) == (False, True)


class _Set:
    """A dataset of the user's."""

    def __getitem__(self, at: int) -> int:
        return at


def _state() -> Foreign:
    return _State()


def _loaders() -> Foreign:
    """``torch.utils.data.dataloader``, as much of it as the probe touches."""

    class _BaseDataLoaderIter:
        def __init__(self, loader: Foreign) -> None:
            self.rows = iter(loader.rows)

        def __iter__(self) -> Iterator[int]:
            return self

        def __next__(self) -> int:
            return int(next(self.rows))

    class Loader:
        def __init__(self, rows: list[int], workers: int = 0) -> None:
            self.rows, self.num_workers, self.batch_size, self.dataset = rows, workers, 8, _Set()

        def __iter__(self) -> Iterator[int]:
            return _BaseDataLoaderIter(self)

    return types.SimpleNamespace(_BaseDataLoaderIter=_BaseDataLoaderIter, Loader=Loader)


def test_each_next_of_a_loader_is_timed_and_its_end_is_no_batch() -> None:
    """Every pass over one loader has one id; the batches are those of the loader; its end is flagged."""
    module, state = _loaders(), _state()
    data_loaders.attach(state, module)
    loader = module.Loader([3, 1, 2], workers=2)
    for _ in range(2):
        assert list(loader) == [3, 1, 2]
    ends = [bool(record[5] & Flag.END) for record in state.written]
    assert ends == [False, False, False, True] * 2
    assert {(record[1], record[2], record[4]) for record in state.written} == {(10, 1, Kind.NEXT)}
    made = [line for line in state.lines if line["t"] == "data-loader"]
    assert [(line["workers"], line["batch"], line["dataset"], line["fn_name"]) for line in made] == [
        (2, 8, "_Set", "_Set.__getitem__")
    ]


def test_errors_of_a_loader_are_the_jobs() -> None:
    """An exception of the dataset passes through, with its own traceback, and is flagged."""
    module, state = _loaders(), _state()
    data_loaders.attach(state, module)
    taking = iter(module.Loader(["x"]))
    with pytest.raises(ValueError, match="invalid literal"):
        next(taking)
    assert [record[5] for record in state.written] == [Flag.RAISED]


@pytest.fixture(scope="module")
def run(recorded: Callable[[str], Run]) -> Run:
    """The program ``torch_training``."""
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode:
        pytest.skip(f"torch is not installed for {PYTHON}")
    return recorded("torch_training")


@pytest.mark.slow
def test_a_real_training(run: Run) -> None:
    """Results are those of a plain run; steps and batches are the program's own count, with workers and without."""
    assert (run.result.returncode, run.result.stdout) == (0, run.plain.stdout), run.result.stderr
    assert run.all(AgentDiagnostic) == []
    assert {p.name for p in run.all(Probe) if p.attached} >= {"optimizer_steps", "backward", "data_loaders"}
    steps = [one for one in run.records if one.kind == Kind.APPLY]
    taken = [one for one in run.records if one.kind == Kind.NEXT and not one.flags & Flag.END]
    assert (len(steps), len(taken)) == (40, 40)
    assert len({one.name.call_line for one in steps}) == 1
    passes = [one for one in run.records if one.kind == Kind.AUTOGRAD]
    assert len(passes) == 40
    assert all(one.dur > 0 for one in passes)
    assert all(0 < one.arg < 10**9 for one in steps)
    made = run.all(DataLoaderMade)
    assert [(one.workers, one.batch, one.dataset) for one in made] == [(0, 4, "Points"), (1, 4, "Points")]
    assert {one.id for one in made} == {one.id for one in run.all(IteratorMade)}
