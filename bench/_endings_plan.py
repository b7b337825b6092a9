"""The programs of the endings benchmark by kind, and the seeded list of pairs that are run."""

from __future__ import annotations

import random
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ALL = ("python", "numpy", "tensorflow", "torch", "jax", "onnxruntime")
FORKED = ("python", "numpy", "torch", "onnxruntime")
"""Frameworks in whose presence a process may fork and its child fall off its own end, without stepscope too."""
LOADS = ("free", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One program and its words; "{framework}" stands for the framework of the pair."""

    words: tuple[str, ...]
    frameworks: tuple[str, ...]
    sends: int = 0
    """Signal that the bench sends once the program notes that it is ready; 0: none."""
    to: str = "process"
    """Who gets it: the ``process`` that the bench started, its ``group``, or the foreground of its ``terminal``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One row of the page."""

    title: str
    pairs: int
    ways: tuple[Way, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A run without stepscope and one under it."""

    kind: str
    number: int
    way: Way
    framework: str
    python: str
    load: str
    measured_first: bool

    @property
    def name(self) -> str:
        """Kind and number: the same in each state of the sources."""
        return f"{self.kind}-{self.number}"


def _each(program: str, names: str, *more: str, frameworks: tuple[str, ...] = ALL) -> tuple[Way, ...]:
    return tuple(Way(words=(program, name, "{framework}", *more), frameworks=frameworks) for name in names.split())


def _processes(method: str) -> tuple[Way, ...]:
    names = "process unjoined daemonic pool pool_open executor executor_open child_exits child_fails manager memory"
    return _each("processes.py", names, method)


def _inputs(framework: str, names: str) -> tuple[Way, ...]:
    return tuple(Way(words=("inputs_left.py", name), frameworks=(framework,)) for name in names.split())


def _sent(way: str, number: int, *targets: str) -> tuple[Way, ...]:
    words = ("signals.py", way, "{framework}")
    return tuple(Way(words=words, frameworks=ALL, sends=number, to=target) for target in targets)


def _fits(*more: str) -> tuple[Way, ...]:
    names = ("numpy_function", "py_function", "from_generator", "py_dataset")
    return tuple(Way(words=("fits.py", name, *more), frameworks=("tensorflow",)) for name in names)


KINDS: Mapping[str, Kind] = {
    "fit": Kind(title="short Keras fit with Python in its input", pairs=1000, ways=_fits()),
    "forced": Kind(title="the same, collections off, a look at memory at every tick", pairs=100, ways=_fits("forced")),
    "inputs": Kind(
        title="inputs and calls of a framework that are not finished",
        pairs=100,
        ways=(
            *_inputs("tensorflow", "tf_iterator tf_generator"),
            *_inputs("torch", "torch_loader torch_iterator torch_persistent torch_spawned torch_backward"),
            *_inputs("jax", "jax_pending jax_callback keras_generator"),
            *_inputs("onnxruntime", "onnx_threads"),
        ),
    ),
    "threads": Kind(
        title="threads that end after the main thread",
        pairs=100,
        ways=_each("threads.py", "later many timer loop excepthook"),
    ),
    "daemons": Kind(
        title="daemon threads, computing and waiting in C",
        pairs=100,
        ways=(
            *_each("threads.py", "daemon_busy daemon_sleeps daemon_receives daemon_locked daemon_gets"),
            *_each("threads.py", "daemon_trains", frameworks=("numpy",)),
        ),
    ),
    "executors": Kind(
        title="executors",
        pairs=100,
        ways=(
            *_each("threads.py", "pool pool_unfinished"),
            *(w for m in ("fork", "spawn", "forkserver") for w in _each("processes.py", "executor executor_open", m)),
        ),
    ),
    "fork": Kind(title="multiprocessing, fork", pairs=100, ways=_processes("fork")),
    "spawn": Kind(title="multiprocessing, spawn", pairs=100, ways=_processes("spawn")),
    "forkserver": Kind(title="multiprocessing, forkserver", pairs=100, ways=_processes("forkserver")),
    "atexit": Kind(title="`atexit`", pairs=100, ways=_each("exits.py", "at_exit at_exit_raises at_exit_exits")),
    "exits": Kind(
        title="`sys.exit`, `os._exit`, `exec`, a closed output",
        pairs=100,
        ways=_each(
            "exits.py",
            "falls_off sys_exit sys_exit_text sys_exit_in_thread os_exit os_exit_in_thread timed_out_exit "
            "exec_another stdout_closed",
        ),
    ),
    "exceptions": Kind(
        title="exceptions that nobody catches",
        pairs=100,
        ways=_each("exits.py", "uncaught uncaught_chain uncaught_in_thread own_hook deletion_raises"),
    ),
    "signals": Kind(
        title="signals: its own, sent to the process, to the group, by Ctrl-C",
        pairs=100,
        ways=(
            *_each("signals.py", "own_term own_interrupt own_kill own_usr1 alarm caught"),
            *_each("exits.py", "abort segfault"),
            *_sent("outside", signal.SIGTERM, "process", "group"),
            *_sent("outside", signal.SIGINT, "process", "group", "terminal"),
            *_sent("outside", signal.SIGUSR1, "process"),
            *_sent("outside", signal.SIGKILL, "group"),
            *_sent("caught_outside", signal.SIGTERM, "process", "group"),
            *_sent("caught_outside", signal.SIGUSR1, "process"),
            *_sent("caught_outside", signal.SIGHUP, "process"),
            *_sent("interrupted_training", signal.SIGINT, "process", "terminal"),
            *_sent("ignored", signal.SIGTERM, "process"),
        ),
    ),
    "outlive": Kind(
        title="processes that outlive the program",
        pairs=100,
        ways=(
            *_each("exits.py", "fork_outlives daemonized subprocess_outlives"),
            *_each("exits.py", "fork_finalizes_later", frameworks=FORKED),
        ),
    ),
    "long": Kind(
        title="programs that live for more than five seconds, and are sampled whatever they import",
        pairs=100,
        ways=_each(
            "exits.py",
            "falls_off sys_exit os_exit at_exit uncaught uncaught_in_thread segfault exec_another fork_outlives "
            "daemonized",
            "long",
            frameworks=("python", "numpy", "torch", "jax"),
        ),
    ),
    "late": Kind(
        title="open generators, `__del__`, queues' feeder threads",
        pairs=100,
        ways=(
            *_each("exits.py", "generator deleted_late"),
            *(w for m in ("fork", "spawn", "forkserver") for w in _each("processes.py", "feeder feeder_left", m)),
        ),
    ),
    "async": Kind(
        title="calls of ONNX Runtime that answer on its threads", pairs=40, ways=_inputs("onnxruntime", "onnx_async")
    ),
}


def plan(pythons: Mapping[str, Sequence[str]], kinds: Sequence[str], runs: int, seed: int) -> list[Pair]:
    """The pairs, the same for the same arguments.

    Args:
        pythons: interpreters by framework.
        kinds: names of ``KINDS``.
        runs: pairs of each kind; 0: as many as each is planned to have.
        seed: of order and choice.
    """
    found = []
    for name in kinds:
        chance = random.Random(f"{seed} {name}")
        number = runs or KINDS[name].pairs
        every = [(w, f) for w in KINDS[name].ways for f in w.frameworks if pythons.get(f)]
        chosen: list[tuple[Way, str]] = []
        while every and len(chosen) < number:
            chosen += chance.sample(every, len(every))
        found += [
            Pair(
                kind=name,
                number=at,
                way=way,
                framework=framework,
                python=chance.choice(pythons[framework]),
                load=LOADS[chance.getrandbits(1)],
                measured_first=bool(chance.getrandbits(1)),
            )
            for at, (way, framework) in enumerate(chosen[:number])
        ]
    random.Random(seed).shuffle(found)
    return found
