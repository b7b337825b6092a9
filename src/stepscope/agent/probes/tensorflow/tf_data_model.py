"""Reads tf.data's live model of the iterators that a job consumes: shows who waits for whom inside a compiled step.

``IteratorGetModelProto`` (TensorFlow 2.17 and later) gives the last 100 gaps between one GetNext's end and the next
one's start, and the self time of every stage. A read costs about 0.1 ms on the thread that does it, so reads are rare,
and become rarer after two minutes. The first read of a process costs 3 to 6 ms, which is no price of the next ones.
"""

from __future__ import annotations

import base64
import sys
import time
from typing import TYPE_CHECKING

from stepscope.agent.probes.common import ConsumedIterator, RunningLoop, shared
from stepscope.agent.probes.support import report
from stepscope.wire.spent import SpentTime

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

ENOUGH = 80
"""Executions after which a read is worthwhile: the model keeps the last 100 gaps."""
FEW = 8
"""Executions since the last read that make another read worthwhile if no more will follow for a while."""
SOON_NS = 200_000_000
LATE_NS = 1_000_000_000
CALM_AFTER_NS = 120_000_000_000
CALM_NS = 10_000_000_000
MAX_COST = 0.001
CALM_COST = 0.0003
"""Share of the time since the first read that all reads may have taken before another one on the agent's thread. Before
one at a loop's end, which may be the last chance, it is ``MAX_COST``."""
FREE_NS = 3_000_000
"""CPU time that reads may always take at the start, so that even a short fit has a model. It is CPU time because delays
on a starved machine are not a cost of the read."""
TRIES = 3
RESOURCE = "_iterator_resource"
"""Attribute with an iterator's resource. Distributed iterators have none; their first device's iterator stands in."""


class ModelReader:
    """Reads models of iterators; all its state belongs to one process."""

    def __init__(self, state: AgentState, operation: Foreign) -> None:
        self._state = state
        self._operation = operation
        self._common = shared(state)
        self._began = 0
        self._first_of_pair: dict[int, int] = {}
        self._spent = SpentTime()

    def tick(self, now_ns: int) -> None:
        """Read every iterator that is due, on the agent's thread. Executions are not counted in a gap."""
        if sys.is_finalizing() or self._state.duty_cycle.detached or not self._affordable(now_ns, CALM_COST):
            return
        for iterator, consumed in self._common.iterators.alive():
            if consumed.ended and not consumed.told and hasattr(iterator, RESOURCE) and self._due(consumed, now_ns):
                self._read(iterator, consumed, sets_up=not self._spent.calls)

    def now(self) -> None:
        """Read every iterator in use at once, on the agent's thread: memory has grown, and its buffers may be why."""
        if sys.is_finalizing():
            return
        for iterator, consumed in self._common.iterators.alive():
            if (consumed.ended or consumed.running) and not consumed.told and hasattr(iterator, RESOURCE):
                self._began = self._began or self._state.now()
                self._read(iterator, consumed)

    def window_ends(self, now_ns: int) -> None:
        """Read what the last executions waited for, on the agent's thread, before a gap."""
        for iterator, consumed in self._common.iterators.alive():
            new = consumed.ended - (consumed.reads[1] if consumed.reads else 0)
            if new >= FEW and not consumed.told and hasattr(iterator, RESOURCE):
                self._began = self._began or now_ns
                self._read(iterator, consumed, sets_up=not self._spent.calls)

    def enough(self) -> bool:
        """Whether every iterator being consumed has enough executions for a worthwhile read. On the agent's thread."""
        for iterator, consumed in self._common.iterators.alive():
            if consumed.told or not consumed.running or not hasattr(iterator, RESOURCE):
                continue
            if consumed.ended - (consumed.reads[1] if consumed.reads else 0) < FEW:
                return False
        return True

    def _due(self, consumed: ConsumedIterator, now_ns: int) -> bool:
        if not self._began:
            self._began = now_ns
        if not consumed.reads:
            consumed.reads = [now_ns, 0]
            return False
        since = now_ns - consumed.reads[0]
        new = consumed.ended - consumed.reads[1]
        wanted = ENOUGH if consumed.reads[1] else FEW  # what ends within a second is taken apart at its last element
        due = (new >= wanted and since >= SOON_NS) or (new >= 1 and since >= LATE_NS)
        if due and now_ns - self._began > CALM_AFTER_NS:
            return self._due_when_calm(consumed, now_ns)
        return due

    def _due_when_calm(self, consumed: ConsumedIterator, now_ns: int) -> bool:
        """Whether a read is due in the calm phase: reads come in pairs, so that neighbours can be subtracted."""
        first = self._first_of_pair.pop(consumed.identity, None)
        if first is not None:
            return True
        if now_ns - consumed.reads[0] < CALM_NS:
            return False
        self._first_of_pair[consumed.identity] = now_ns
        return True

    def loop_ends(self, loop: RunningLoop | None) -> None:
        """Read, on the training thread, when an epoch or a loop ends: the iterator may be gone at the next tick."""
        if loop is None or loop.role != "fit":
            return
        now = self._state.now()
        if not self._began:
            self._began = now
        for iterator, consumed in self._common.iterators.alive():
            if consumed not in loop.consumed or consumed.told or not hasattr(iterator, RESOURCE):
                continue
            new = consumed.ended - (consumed.reads[1] if consumed.reads else 0)
            if new and self._affordable(now, MAX_COST):
                self._read(iterator, consumed)

    def _affordable(self, now_ns: int, ratio: float) -> bool:
        return self._spent.ns <= FREE_NS + ratio * (now_ns - self._began)

    def _read(self, iterator: Foreign, consumed: ConsumedIterator, *, sets_up: bool = False) -> None:
        """Read and log one model; repeat if a call began or ended meanwhile. ``sets_up``: the first, on our thread."""
        used = time.thread_time_ns()
        line: dict[str, Foreign] = {"t": "itermodel", "iterator": consumed.identity}
        proto = b""
        for _ in range(TRIES):
            ended, running = consumed.ended, consumed.running
            try:
                proto = self._operation(iterator._iterator_resource)
            except Exception as error:
                consumed.told = True
                line["error"] = "no-model" if type(error).__name__ == "NotFoundError" else repr(error)[:200]
                break
            if ended == consumed.ended:
                break
        at = self._state.now()
        consumed.reads = [at, ended]
        line.update(at=at, executions=ended, in_call=running > 0, cpu_ns=time.process_time_ns())
        if "error" not in line:
            line["proto"] = base64.b64encode(proto).decode("ascii")
        self._state.log(line)
        used = time.thread_time_ns() - used
        self._spent.add(used)
        if sets_up:  # nor does it say what the thread takes of a core
            self._state.hooks.apart_ns += used


def attach(state: AgentState, module: Foreign) -> None:
    """Start reading, on the agent's ticks and at the ends of loops; log once if TensorFlow lacks the op."""
    operation = getattr(module, "iterator_get_model_proto", None)
    if operation is None:
        report(state, "tf_data_model", "no-op")
        _tell_absence(state)
        return
    context = sys.modules["tensorflow.python.eager.context"]

    def read(resource: Foreign) -> bytes:
        if not context.executing_eagerly():
            raise RuntimeError("the calling thread builds a graph")
        tensor = operation(resource)
        value = tensor._numpy_internal()
        return value if isinstance(value, bytes) else bytes(value.item())

    reader = ModelReader(state, read)
    shared(state).read_models = state.guard("tf_data_model.loop")(reader.loop_ends)
    shared(state).models_now = state.guard("tf_data_model.now")(reader.now)
    state.hooks.on_tick(reader.tick)
    state.duty_cycle.before.append(reader.window_ends)
    state.duty_cycle.enough.append(reader.enough)
    report(state, "tf_data_model")


def _tell_absence(state: AgentState) -> None:
    """Log "no-op" once, for the first iterator that a compiled function consumes, and soon: a capture may be wanted."""
    common = shared(state)
    once = [True]

    def say(consumed: ConsumedIterator) -> None:
        try:
            once.pop()  # two threads may get here
        except IndexError:
            return
        state.log({"t": "itermodel", "at": state.now(), "iterator": consumed.identity, "error": "no-op"})

    def loop_ends(loop: RunningLoop | None) -> None:
        if loop is not None and loop.role == "fit" and loop.consumed:
            say(loop.consumed[0])

    def tick(_now_ns: int) -> None:
        if not once or sys.is_finalizing():
            return
        for _, consumed in common.iterators.alive():
            if consumed.ended and consumed.loop is not None and consumed.loop.role == "fit":
                say(consumed)
                return

    common.read_models = state.guard("tf_data_model.absence")(loop_ends)
    state.hooks.on_tick(tick)


TARGETS = (("tensorflow.python.ops.gen_experimental_dataset_ops", attach),)
