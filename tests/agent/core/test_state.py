"""The state: patches come off, failures of ours stay ours, ids and threads hold."""

from __future__ import annotations

import _thread
import gc
import signal
import sys
import threading
import types
import weakref
from typing import Any

import pytest
from tests.agent.conftest import Armed, Measured, read_process

from stepscope.agent.core import lines
from stepscope.agent.state import AgentState
from stepscope.model.log.events import AgentDiagnostic, Name, Probe, ProcessEnded, ThreadSeen


def measured(armed: Armed) -> Measured:
    """What the only process has written."""
    (folder,) = (armed.folder / "procs").iterdir()
    return read_process(folder)


class Base:
    """Something to patch."""

    def inherited(self) -> str:
        """A method that a subclass inherits."""
        return "base"

    @staticmethod
    def static() -> str:
        """A static method."""
        return "static"


class Derived(Base):
    """Has nothing of its own."""


def test_uninstall_puts_everything_back(opened: AgentState) -> None:
    """Functions of modules, methods, inherited and static ones and instance attributes are as they were."""
    module = types.ModuleType("some")
    module.function = len  # type: ignore[attr-defined]
    thing = Base()
    before = [dict(vars(owner)) for owner in (module, Base, Derived, thing)]
    for owner, name in ((module, "function"), (Base, "inherited"), (Base, "static"), (Derived, "inherited")):
        opened.patch(owner, name, lambda *_: "patched")
    opened.patch(Base, "inherited", lambda *_: "twice")
    opened.patch(thing, "inherited", lambda *_: "own")
    assert (Base.inherited(thing), Derived().inherited(), thing.inherited()) == ("twice", "patched", "own")
    opened.uninstall()
    assert [dict(vars(owner)) for owner in (module, Base, Derived, thing)] == before
    assert isinstance(vars(Base)["static"], staticmethod)


def test_patches_of_others_stay(opened: AgentState) -> None:
    """What somebody else has put over our patch is not taken off."""
    module = types.ModuleType("some")
    module.function = len  # type: ignore[attr-defined]
    opened.patch(module, "function", max)
    module.function = min  # type: ignore[attr-defined]
    opened.uninstall()
    assert module.function is min


def test_copies_of_patched_functions_are_put_back(opened: AgentState, monkeypatch: pytest.MonkeyPatch) -> None:
    """``from x import y`` in another module has copied our replacement: the original comes back there too."""

    class Lazy(types.ModuleType):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    module, other = types.ModuleType("some"), types.ModuleType("other")
    module.function = len  # type: ignore[attr-defined]
    for _ in range(2):
        opened.patch(module, "function", opened.guard("any")(module.function))
    other.alias = module.function  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "other", other)
    monkeypatch.setitem(sys.modules, "lazy", Lazy("lazy"))
    opened.uninstall()
    assert module.function is other.alias is len


def test_attach_failure_is_a_probe_line(armed: Armed, opened: AgentState) -> None:
    """A probe that cannot attach says why, and the agent goes on."""

    def attach(_state: AgentState, _module: Any) -> None:
        raise AttributeError("no such method")

    opened.attach("broken", attach, None)
    (line,) = measured(armed).of(Probe)
    assert (line.name, line.attached, line.why) == ("broken", False, "AttributeError: no such method")
    assert not opened.lines.out


def test_third_failure_takes_the_probe_out(armed: Armed, opened: AgentState) -> None:
    """After three failures of one probe its patches are gone, those of others are not."""
    module = types.ModuleType("some")
    module.mine = module.other = len  # type: ignore[attr-defined]
    opened.attach("weak", lambda state, m: state.patch(m, "mine", max), module)
    opened.attach("good", lambda state, m: state.patch(m, "other", max), module)
    calls = []

    @opened.guard("weak.place")
    def fail() -> int:
        calls.append(1)
        raise KeyError("ours")

    assert [fail() for _ in range(5)] == [None] * 5
    assert len(calls) == 3
    assert (module.mine, module.other) == (len, max)
    lines = measured(armed).of(AgentDiagnostic)
    assert [line.code for line in lines] == ["DX901", "DX902"]
    assert "weak.place: KeyError: 'ours' (test_state.py" in lines[0].text


def test_guard_lets_interrupts_and_the_users_exceptions_pass(opened: AgentState) -> None:
    """KeyboardInterrupt, and what the user's signal handler raises inside our code, reach the job."""

    def handler(_signal: int, _frame: Any) -> None:
        raise TimeoutError("the user's")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(TimeoutError, match="the user's"), opened.guard("any"):
            signal.raise_signal(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(KeyboardInterrupt), opened.guard("any"):
        raise KeyboardInterrupt


def test_guard_as_context(armed: Armed, opened: AgentState) -> None:
    """An error of ours in a guarded block ends the block, is recorded once per text, and nothing else."""
    for _ in range(2):
        with opened.guard("place"):
            int("x")
    assert [line.code for line in measured(armed).of(AgentDiagnostic)] == ["DX901"]


def test_names_are_interned(armed: Armed, opened: AgentState) -> None:
    """One id and one line per key."""
    first = opened.name(("a", 1), "text", role="train", line=3)
    assert opened.name(("a", 1), "other") == first
    second = opened.name(("a", 2), "text")
    assert second != first
    assert [(n.id, n.text, n.role, n.line) for n in measured(armed).of(Name)] == [
        (first, "text", "train", 3),
        (second, "text", "", 0),
    ]


def test_threads_have_ids_and_stay_invisible(armed: Armed, opened: AgentState) -> None:
    """Each thread is logged once, with its name; asking makes no Thread object for threads that have none."""
    ids = [opened.thread(), opened.thread()]
    others: list[int] = []
    done = threading.Lock()
    done.acquire()

    def foreign() -> None:
        others.extend((opened.thread(), opened.thread()))
        done.release()

    import _thread

    _thread.start_new_thread(foreign, ())
    done.acquire()
    thread = threading.Thread(target=lambda: others.append(opened.thread()), name="named")
    thread.start()
    thread.join()
    assert ids[0] == ids[1]
    assert others[0] == others[1] != others[2]
    lines = measured(armed).of(ThreadSeen)
    assert [(line.id, line.main) for line in lines] == [(ids[0], True), (others[0], False), (others[2], False)]
    assert lines[2].name == "named"
    assert not [t for t in threading.enumerate() if "Dummy" in t.name]


def test_a_thread_is_not_kept_alive(opened: AgentState) -> None:
    """A thread that has ended is freed, with all that hangs on it; one that reuses its ident is a new one."""
    seen: list[tuple[int, int]] = []
    threads = []
    for _ in range(20):
        thread = threading.Thread(target=lambda: seen.append((threading.get_ident(), opened.thread())))
        thread.start()
        thread.join()
        threads.append(weakref.ref(thread))
        del thread
    gc.collect()
    assert [ref() for ref in threads] == [None] * 20
    assert len({number for _, number in seen}) == 20


def test_names_are_bounded(armed: Armed, opened: AgentState, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that makes up names without end gets one name for the rest, and a diagnostic."""
    monkeypatch.setattr(lines, "_MAX_NAMES", 10)
    ids = [opened.name(i, str(i)) for i in range(30)]
    assert len(set(ids)) == 11
    assert len(set(ids[10:])) == 1
    assert opened.name(3, "3") == ids[3]
    process = measured(armed)
    assert [line.text for line in process.of(Name)][-1] == "(others)"
    assert [line.code for line in process.of(AgentDiagnostic)] == ["DX912"]


def test_new_ids_count_from_one(opened: AgentState) -> None:
    """Each kind of id counts by itself."""
    assert [opened.new_id("trace"), opened.new_id("trace"), opened.new_id("dataset")] == [1, 2, 1]


def test_taken_out_agent_is_silent(armed: Armed, opened: AgentState) -> None:
    """After the agent has left, writing and logging do nothing, and do not fail."""
    opened.write(1, 2, 3, 4, 5, 6, 7)
    opened.take_out("a test")
    opened.write(1, 2, 3, 4, 5, 6, 7)
    opened.log({"t": "metric", "name": "x", "value": 1.0})
    opened.finish()
    process = measured(armed)
    assert len(process.records) == 1
    assert [line.code for line in process.of(AgentDiagnostic)] == ["DX900"]
    assert process.of(ProcessEnded) == []


def test_diagnostics_are_bounded(armed: Armed, opened: AgentState) -> None:
    """However many different things fail, the log holds 200 of them."""
    for i in range(300):
        opened.lines.diagnostic("DX901", str(i))
    assert len(measured(armed).of(AgentDiagnostic)) == 200


def test_a_thread_without_an_object_is_known_by_its_ident(opened: AgentState) -> None:
    """Both ways to ask give one id, on threads that native code made and on those of Python; another thread has
    another, also where it has been given the ident of one that is gone."""
    found: dict[str, list[int]] = {}

    def ask(key: str) -> None:
        found[key] = [opened.thread(), opened.threads.of_pool(), opened.threads.of_pool()]

    def native(key: str, done: threading.Event) -> None:
        ask(key)
        done.set()

    done = threading.Event()
    _thread.start_new_thread(native, ("native", done))
    assert done.wait(60)
    for key in ("python", "again"):
        thread = threading.Thread(target=ask, args=(key,))
        thread.start()
        thread.join()
    ask("main")
    assert all(len(set(ids)) == 1 for ids in found.values())
    assert len({ids[0] for ids in found.values()}) == 4
