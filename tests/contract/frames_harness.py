"""Holds a job's objects in several threads while a function of the agent is called, and says what of them lives on.

``DRIVERS`` says how each function is called (``frames_program``).
"""

from __future__ import annotations

import gc
import importlib
import threading
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from stepscope.agent import bootstrap
from stepscope.agent import state as agent_state

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign

gc.disable()
assert bootstrap.HOOK is not None
bootstrap.HOOK.activate()  # measured, but not sampled: a thread of ours would hold frames while it looks
State: Foreign = agent_state.CURRENT
DRIVERS: dict[str, Callable[[Foreign], object]] = {}
Driver = Callable[[object], object]


class Thing:
    """An object of the job: a batch, a tensor, an op, a model."""

    shape = (2, 3)
    type = "QueueDequeueV2"
    name = "thing"
    _id = 0
    _python_function = staticmethod(lambda: None)

    def get_session_options(self) -> Foreign:
        """Options of a session of ONNX Runtime."""
        names = ("intra_op_num_threads", "inter_op_num_threads", "execution_mode", "enable_cpu_mem_arena")
        entry = {"get_session_config_entry": lambda _: "1"}
        return types.SimpleNamespace(**dict.fromkeys(names, 1), **entry)

    def get_inputs(self) -> list[Foreign]:
        """Its inputs."""
        return []

    def get_providers(self) -> list[str]:
        """Its providers."""
        return []


class Items:
    """Something to iterate over, by an iterator that can be weakly referenced."""

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> int:
        return 1


class Harness:
    """Threads with the job's objects in their locals, and weak references to these."""

    def __init__(self) -> None:
        self.kept: list[weakref.ref[Foreign]] = []
        self.dropped: list[weakref.ref[Foreign]] = []
        self._steps = [threading.Event() for _ in range(2)]
        self._told = [threading.Semaphore(0) for _ in range(2)]

    def note(self, *things: object) -> None:
        """Things that must be dead when the threads have ended."""
        self.kept += [weakref.ref(thing) for thing in things]

    def hold(self) -> None:
        """Hold things, let go of some of them while the frame lives on, and end."""
        start, fetches, batch = 1, [Thing()], Thing()
        items, iterator = self.generate(), iter(Items())
        next(items)
        self.note(items, iterator, fetches[0])
        self.dropped.append(weakref.ref(batch))
        self._told[0].release()
        self._steps[0].wait()
        del batch, start
        self._told[1].release()
        self._steps[1].wait()

    def generate(self) -> Foreign:
        """A generator with a thing of its own."""
        own = Thing()
        self.note(own)
        yield 1
        yield own

    def run(self, driver: Driver) -> str:
        """Call ``driver`` while others hold things; what lived on, or "" if nothing did."""
        threads = [threading.Thread(target=self.hold, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
            self._told[0].acquire()
        self.job(driver)
        self._steps[0].set()
        for _ in threads:
            self._told[1].acquire()
        early = sum(reference() is not None for reference in self.dropped)
        self._steps[1].set()
        for thread in threads:
            thread.join()
        late = sum(reference() is not None for reference in self.kept)
        return f"{early} in a frame that runs on, {late} after its end" if early or late else ""

    def job(self, driver: Driver) -> None:
        """A function of the job that is here when ``driver`` is called, with a batch of its own."""
        batch = Thing()
        self.note(batch)
        driver(batch)
        driver(batch)


def drives(*places: str) -> Callable[[Driver], Driver]:
    """Decorator: how the functions at these places are called."""

    def add(driver: Driver) -> Driver:
        DRIVERS.update(dict.fromkeys(places, driver))
        return driver

    return add


def module(path: str) -> Foreign:
    """A module of the agent."""
    return importlib.import_module("stepscope.agent." + path[:-3].replace("/", "."))


def failing(batch: object, use: Callable[[Foreign], object]) -> None:
    """Call ``use`` with an exception that a function of the job raised."""

    def user(mine: object) -> None:
        raise MemoryError("allocating 12345 bytes", type(mine))

    try:
        user(batch)
    except MemoryError as error:
        use(error)


def returns(*_args: object, **_kwargs: object) -> None:
    """A function of a framework."""


def makes(*_args: object, **_kwargs: object) -> Callable[..., None]:
    """One that makes a function."""
    return returns


def raises(*_args: object, **_kwargs: object) -> None:
    """One that fails."""
    raise ValueError
