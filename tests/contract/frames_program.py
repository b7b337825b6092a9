"""Calls every function of the agent that touches frames or tracebacks, and prints what of the job's it keeps alive.

Runs armed, on any supported Python, without a framework: stand-ins take their place. What is called is compared with
what the sources have (``test_frames``).
"""

from __future__ import annotations

import functools
import gc
import json
import sys
import threading
import types
from typing import TYPE_CHECKING

from tests.contract.frames_harness import (
    DRIVERS,
    Driver,
    Harness,
    State,
    Thing,
    drives,
    failing,
    makes,
    module,
    returns,
)
from tests.contract.frames_wrappers import CONTEXT

from stepscope.agent.core import frames, held, other_frames
from stepscope.agent.core.weak_ids import WeakIds

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign

# -- frames of all threads ---------------------------------------------------------------------------------------------


@drives("core/other_frames.py:Stacks.__enter__", "core/other_frames.py:variables", "core/other_frames.py:variable")
def _(batch: Foreign) -> None:
    del batch
    with other_frames.Stacks() as found:
        for frame in found.values():
            own: types.FrameType | None = frame
            while own is not None:
                other_frames.variables(own)
                other_frames.variable(own, "batch")
                own = own.f_back


@drives("core/other_frames.py:_learned")
def _(batch: Foreign) -> None:
    del batch
    other_frames._learned()


@drives("core/held.py:rows", "core/held.py:_user_frames")
def _(batch: Foreign) -> None:
    del batch
    with other_frames.Stacks() as found:
        held.rows(list(found.values()))


@drives("bootstrap.py:_asker", "bootstrap.py:ImportHook._note")
def _(batch: Foreign) -> None:
    del batch
    hook = module("bootstrap.py").ImportHook("/nowhere")

    def _find_and_load() -> None:  # as the interpreter's own function that asks finders is called
        hook.find_spec("no_module_of_anybody")

    _find_and_load()
    assert hook.asked


@functools.cache
def watch() -> Foreign:
    return module("probes/python/memory_watch.py").Watch(State)


@drives("probes/python/memory_watch.py:Watch.look")
def _(batch: Foreign) -> None:
    watch().asked()
    failing(batch, lambda error: watch().died(error.__traceback__.tb_frame))


def sampler(way: str) -> Driver:
    """Have another thread sample, as the agent's does."""

    def driver(batch: Foreign) -> None:
        del batch
        made = module("sampling/sampler.py").Sampler(State)
        done = threading.Thread(target=getattr(made, way), args=(10**18, 1, 0)[: 3 if way == "_sample_main" else 2])
        done.start()
        done.join()

    return driver


for _place in ("_sample", "_other", "_idle"):
    DRIVERS["sampling/sampler.py:Sampler." + _place] = sampler("_sample")
DRIVERS["sampling/sampler.py:Sampler._sample_main"] = sampler("_sample_main")


@drives("sampling/stacks.py:StackTable.stack", "sampling/stacks.py:StackTable._intern", "sampling/stacks.py:begun")
def _(batch: Foreign) -> None:
    table = module("sampling/stacks.py").StackTable(State)
    table.stack(module("sampling/stacks.py").begun(sys._getframe()))
    State.kept_by_test = table


@drives("sampling/cpu_timer.py:CpuTimer._on_signal")
def _(batch: Foreign) -> None:
    timer = module("sampling/cpu_timer.py").CpuTimer(State, module("sampling/stacks.py").StackTable(State))
    timer.clock = timer._thread = 1
    timer._on_signal(34, sys._getframe())


@drives("graphs/awaited_ops.py:AwaitedOps.tick", "graphs/awaited_ops.py:AwaitedOps._run_of")
def _(batch: Foreign) -> None:
    del batch
    awaited = module("graphs/awaited_ops.py").AwaitedOps(State, Harness.hold.__code__)
    awaited.tick(10**18)
    assert awaited._told == {1}
    State.kept_too = awaited


# -- the calling thread's frames ---------------------------------------------------------------------------------------


@drives(*("core/frames.py:" + name for name in ("user_stack", "user_frame")))
def _(batch: Foreign) -> None:
    frames.user_stack(8)
    frames.user_frame()


@drives("core/frames.py:ended_the_program")
def _(batch: Foreign) -> None:
    def look(error: BaseException) -> None:
        sys.last_traceback = error.__traceback__
        try:
            assert frames.ended_the_program(failing)
            assert not frames.ended_the_program(driven)
        finally:
            del sys.last_traceback

    failing(batch, look)


@drives("graphs/node_lines.py:NodeNotes._path", "probes/keras/layers.py:_updating")
def _(batch: Foreign) -> None:
    lines = module("graphs/node_lines.py").NodeNotes(lambda: 0, WeakIds())
    layers = module("probes/keras/layers.py")
    lines.updates(driven.__code__)
    lines.updater = functools.partial(layers._updating, layers.owners_of(State))
    driven(batch, lines)
    State.lines_of_test = lines


def driven(batch: Foreign, lines: Foreign) -> None:
    """Stands in for the method of an optimizer that makes ops."""
    lines.note(Thing(), batch, sys._getframe())


@drives("probes/keras/layers.py:_wrap", "probes/keras/layers.py:_built", "probes/keras/layers.py:_is_its_own")
def _(batch: Foreign) -> None:
    wrapped = module("probes/keras/layers.py")._wrap(State, returns, returns)

    class Layer(Thing):
        def __init__(self, given: object) -> None:
            wrapped(self, given)

    Layer(batch)


@drives(*("probes/support.py:" + name for name in ("outside", "drop_our_frame", "user_stack", "_mapped_stack")))
def _(batch: Foreign) -> None:
    support = module("probes/support.py")
    support.outside(sys._getframe())
    failing(batch, support.drop_our_frame)
    support.user_stack()
    support._mapped_stack()


@drives("probes/tensorflow/building.py:_outside", "probes/tensorflow/session.py:_outside")
def _(batch: Foreign) -> None:
    for name in ("building", "session"):
        module(f"probes/tensorflow/{name}.py")._outside(sys._getframe())


@drives("probes/torch/optimizer_steps.py:_outside", "probes/torch/optimizer_steps.py:_hook")
def _(batch: Foreign) -> None:
    steps = module("probes/torch/optimizer_steps.py")
    steps._hook(State, returns, {})(batch, (batch,), {})
    steps._outside(sys._getframe(), {})


@drives("probes/jax/compilations.py:Programs.listen", "probes/jax/compilations.py:_found")
def _(batch: Foreign) -> None:
    compilations = module("probes/jax/compilations.py")
    fun, dbg, in_type = batch, None, (batch,)
    compilations.Programs(State).listen(compilations.TRACED, 0.0, fun_name="f")
    compilations._found(sys._getframe())
    del fun, dbg, in_type


@drives("probes/jax/jit_calls.py:_outside")
def _(batch: Foreign) -> None:
    module("probes/jax/jit_calls.py")._outside(sys._getframe())


@drives("probes/tensorflow/session.py:fills_a_queue")
def _(batch: Foreign) -> None:
    module("probes/tensorflow/session.py").fills_a_queue(sys._getframe())


@drives("probes/tensorflow/session.py:_wrap_callables")
def _(batch: Foreign) -> None:
    session = module("probes/tensorflow/session.py")
    session._wrap_callables(State, makes, session.Fetches(State))(batch, batch)(batch)


@drives("probes/tensorflow/session_hooks.py:_wrap_making")
def _(batch: Foreign) -> None:
    module("probes/tensorflow/session_hooks.py")._wrap_making(State, returns, object)(batch, batch, [batch])


@drives("trials/support.py:called_by_program")
def _(batch: Foreign) -> None:
    module("trials/support.py").called_by_program()


@drives("trials/code/functions.py:_alive")
def _(batch: Foreign) -> None:
    module("trials/code/functions.py")._alive()


@functools.cache
def effect(text: str) -> Foreign:
    return module("trials/effect.py").Effect(State, text)


@drives("trials/inputs/compute_only.py:_attach_trainer", "trials/inputs/compute_only.py:_attach_handler")
def _(batch: Foreign) -> None:
    compute_only = module("trials/inputs/compute_only.py")
    for name, attach in (("TFEpochIterator", "_attach_trainer"), ("DataHandler", "_attach_handler")):
        cls: Foreign = type(name, (Thing,), {"__init__": returns, "_dataset": 1, "_distributed_dataset": 1})
        cls.data_adapter, cls.steps_per_epoch, cls._inferred_steps = types.SimpleNamespace(num_batches=1), 1, 1
        getattr(compute_only, attach)(effect("compute-only"), State, types.SimpleNamespace(**{name: cls}))
        cls(batch)


@drives("trials/inputs/stages.py:_attach")
def _(batch: Foreign) -> None:
    cls = type("DatasetV2", (Thing,), {"map": lambda self, _: self, "element_spec": 1})
    stages = module("trials/inputs/stages.py")
    stages._attach(effect("without-stage:f.py:1"), "f.py", 1, State, types.SimpleNamespace(DatasetV2=cls))
    cls().map(batch)


@drives("trials/tensors/digests.py:_place", "trials/tensors/digests.py:_static")
def _(batch: Foreign) -> None:
    digests = module("trials/tensors/digests.py")
    digests._place(sys._getframe())
    op = types.SimpleNamespace(node_def=types.SimpleNamespace(attr={}), graph=batch)
    known = types.SimpleNamespace(numbers={}, values={})
    digests._static(op, [], known, batch)


@drives("trials/tensors/without_lines.py:FileLines.made_by", "trials/tensors/without_lines.py:_attach")
def _(batch: Foreign) -> None:
    without = module("trials/tensors/without_lines.py")
    lines = without.FileLines("frames_program.py:1")
    lines.made_by(sys._getframe(), lambda _: False)
    called: list[Foreign] = []
    context = types.SimpleNamespace(add_op_callback=called.append, remove_op_callback=returns)
    vars(CONTEXT)["context"] = lambda: context
    without._attach(effect("without-lines:frames_program.py:1"), lines, types.SimpleNamespace(busy=False), State, None)
    called[0]("MatMul", [batch], None, [batch], None, batch)


def main() -> None:
    """Print what is kept, by the place of the function that keeps it."""
    wanted = sys.argv[1:] or sorted(DRIVERS)
    kept = {}
    for place in wanted:
        found = Harness().run(DRIVERS[place])
        if found:
            kept[place] = found
    sys.stdout.write(json.dumps({"called": sorted(wanted), "kept": kept, "collects": gc.isenabled()}))


main()
