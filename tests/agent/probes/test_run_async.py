"""Runs of ONNX Runtime that answer by a callback, with a module that behaves as its does."""

from __future__ import annotations

import itertools
import threading
import traceback
import types
from typing import TYPE_CHECKING

import pytest
from tests.agent.conftest import Armed, Record, read_process

from stepscope.agent.probes.onnxruntime import inference
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState


def _module() -> Foreign:
    class Session:
        _model_path = "/models/tower.onnx"

        def __init__(self) -> None:
            self.waiting: list[tuple[Foreign, Foreign]] = []

        def run(self, output_names: Foreign, input_feed: Foreign, run_options: Foreign = None) -> None:
            raise NotImplementedError

        def run_async(
            self,
            output_names: Foreign,
            input_feed: Foreign,
            callback: Foreign,
            user_data: Foreign,
            run_options: Foreign = None,
        ) -> None:
            if not callable(callback):
                raise TypeError(callback)
            self.waiting.append((callback, user_data))

        def answer(self, error: str = "") -> None:
            callback, user_data = self.waiting.pop(0)
            done = threading.Thread(target=lambda: callback(["result"], user_data, error))
            done.start()
            done.join()

    return types.SimpleNamespace(Session=Session, InferenceSession=Session)


@pytest.fixture
def session(opened: AgentState) -> Foreign:
    """A session with our probe."""
    module = _module()
    opened.attach("onnxruntime.inference", inference.attach, module)
    return module.Session()


def runs(armed: Armed) -> list[Record]:
    """What was recorded of them."""
    (folder,) = (armed.folder / "procs").iterdir()
    return read_process(folder).kinds(Kind.INFERENCE)


def feed(rows: int) -> Foreign:
    """An input of so many rows."""
    return {"x": types.SimpleNamespace(shape=(rows, 16))}


def test_a_run_lasts_until_its_callback(session: Foreign, opened: AgentState, armed: Armed) -> None:
    """On the thread that asked, by position or by name; the job's callback gets what it would get."""
    got: list[tuple[Foreign, ...]] = []

    def take(*given: Foreign) -> None:
        got.append(given)

    asked = opened.now()
    session.run_async(None, feed(3), take, "first")
    between = opened.now()
    session.answer()
    session.run_async(["y"], input_feed=feed(5), callback=take, user_data="second")
    session.answer("failed")
    assert got == [(["result"], "first", ""), (["result"], "second", "failed")]
    first, second = runs(armed)
    assert asked <= first.start_ns <= between <= first.start_ns + first.dur_ns <= second.start_ns
    assert [(run.arg, run.flags & Flag.RAISED) for run in (first, second)] == [(3, 0), (5, Flag.RAISED)]
    assert {run.thread for run in (first, second)} == {opened.thread()}


def test_runs_that_overlap_follow_each_other(session: Foreign, armed: Armed) -> None:
    """Three in flight: the thread is never in two of them."""
    for rows in (1, 2, 3):
        session.run_async(None, feed(rows), lambda *_: None, None)
    for _ in range(3):
        session.answer()
    found = runs(armed)
    assert [run.arg for run in found] == [1, 2, 3]
    for one, after in itertools.pairwise(found):
        assert after.start_ns == one.start_ns + one.dur_ns


@pytest.mark.parametrize("callback", [None, "no function"])
def test_what_is_no_function_is_the_jobs_error(session: Foreign, armed: Armed, callback: Foreign) -> None:
    """ONNX Runtime refuses it itself, and sees what the job gave."""
    with pytest.raises(TypeError) as caught:
        session.run_async(None, feed(1), callback, None)
    assert caught.value.args == (callback,)
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][-1] == "run_async"
    assert len(caught.traceback) == 2
    assert runs(armed) == []


def test_errors_of_the_callback_are_its_own(session: Foreign, armed: Armed) -> None:
    """They pass through, without a frame of ours."""

    def fails(*_: Foreign) -> None:
        raise LookupError

    session.run_async(None, feed(1), fails, None)
    callback: Callable[..., None] = session.waiting[0][0]
    with pytest.raises(LookupError) as caught:
        callback([], None, "")
    assert [entry.name for entry in caught.traceback] == ["test_errors_of_the_callback_are_its_own", "fails"]
    assert len(runs(armed)) == 1


@pytest.mark.parametrize("names", [("user_data",), ("results", "user_data", "error")])
def test_a_callback_may_be_called_by_names(session: Foreign, armed: Armed, names: tuple[str, ...]) -> None:
    """What another library puts between the job and ONNX Runtime is free to."""
    got: list[Foreign] = []

    def take(results: Foreign, user_data: Foreign, error: Foreign = "") -> None:
        got.append((results, user_data, error))

    session.run_async(None, feed(1), take, None)
    given = dict(zip(("results", "user_data", "error"), ("values", "mine", ""), strict=True))
    by_name = {name: given[name] for name in names}
    session.waiting[0][0](*(value for name, value in given.items() if name not in names and name != "error"), **by_name)
    assert got == [("values", "mine", "")]
    assert len(runs(armed)) == 1


def asked_on_threads(session: Foreign, count: int) -> None:
    """A run asked for by each of so many threads that end at once."""
    for _ in range(count):
        thread = threading.Thread(target=session.run_async, args=(None, feed(1), lambda *_: None, None))
        thread.start()
        thread.join()


def held(session: Foreign) -> int:
    """Number of what the wrapper holds."""
    cells = (cell.cell_contents for cell in type(session).run_async.__closure__)
    return sum(len(value) for value in cells if isinstance(value, (dict, list, set)))


def test_nothing_is_kept_of_threads_that_have_ended(session: Foreign, armed: Armed) -> None:
    """A server may make one for each request."""
    asked_on_threads(session, 1)
    session.answer()
    before = held(session)
    asked_on_threads(session, 20)
    for _ in range(20):
        session.answer()
    assert held(session) == before
    assert len(runs(armed)) == 21


def test_threads_that_share_a_number_do_not_share_their_runs(
    session: Foreign, opened: AgentState, armed: Armed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the last number of a thread all have that one: each run still lasts from its own call."""
    monkeypatch.setattr(opened, "thread", lambda: 65_535)
    asked_on_threads(session, 3)
    between = opened.now()
    for _ in range(3):
        session.answer()
    assert all(run.start_ns <= between for run in runs(armed))
