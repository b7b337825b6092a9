"""How wrappers of what frameworks call, and functions that are given exceptions, are called."""

from __future__ import annotations

import collections
import contextlib
import functools
import gc
import sys
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.contract.frames_harness import (
    DRIVERS,
    State,
    Thing,
    drives,
    failing,
    module,
    raises,
    returns,
)

from stepscope.agent.core import frames, guard
from stepscope.agent.core.weak_ids import WeakIds

if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign


def wrapper(place: str, *more: Callable[[Foreign], object], state: bool = True, fed: bool = False) -> None:
    """``place`` makes a wrapper of a function, which is called with the batch; the function returns, or it raises.

    Args:
        place: Module and function.
        more: What make its further arguments, given its module.
        state: Whether the first argument is the agent's state.
        fed: Whether the batch is fed, as to a session.
    """
    path, name = place.split(":")

    def driver(batch: Foreign) -> None:
        make = functools.partial(getattr(module(path), name), *[State][: int(state)])
        for original in (returns, raises):
            wrapped = make(original, *[part(module(path)) for part in more])
            with contextlib.suppress(ValueError):
                wrapped(batch, batch, {batch: batch} if fed else batch)

    DRIVERS[place] = driver


# -- exceptions --------------------------------------------------------------------------------------------------------


@drives(*("core/guard.py:" + name for name in ("Failures.swallow", "_from_user", "place_of")))
def _(batch: Foreign) -> None:
    failures = guard.Failures(returns, returns)
    failing(batch, lambda error: failures.swallow("test.place", error))
    failing(batch, lambda error: guard._from_user(error.__traceback__))
    failing(batch, guard.place_of)
    with failures.guard("test.place"):
        exec(compile("raise ValueError", "<generated>", "exec"), {"batch": batch})
    State.failures_of_test = failures


@drives("probes/python/memory_watch.py:attach", "probes/python/memory_watch.py:_user_stack")
def _(batch: Foreign) -> None:
    hooks = types.ModuleType("hooks")
    vars(hooks)["excepthook"] = returns
    module("probes/python/memory_watch.py").attach(State, hooks)
    failing(batch, lambda error: hooks.excepthook(type(error), error, error.__traceback__))


@drives("probes/python/thread_deaths.py:attach", "probes/python/thread_deaths.py:_user_stack")
def _(batch: Foreign) -> None:
    hooks = types.ModuleType("hooks")
    vars(hooks)["excepthook"] = returns
    module("probes/python/thread_deaths.py").attach(State, hooks)
    args = types.SimpleNamespace
    failing(
        batch,
        lambda error: hooks.excepthook(args(exc_type=type(error), exc_traceback=error.__traceback__, thread=None)),
    )


@drives("probes/python/gc.py:attach")
def _(batch: Foreign) -> None:
    module("probes/python/gc.py").attach(State, None)
    for phase in ("start", "stop"):
        gc.callbacks[-1](phase, {"generation": 0, "collected": 0, "uncollectable": 0})


@drives("payload/sitecustomize.py:")
def _(batch: Foreign) -> None:
    bootstrap = module("bootstrap.py")
    path = Path(frames.__file__).parents[1] / "payload" / "sitecustomize.py"
    code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    arm, bootstrap.arm = bootstrap.arm, raises
    try:
        exec(code, {"__file__": str(path)})
    except ImportError:  # this Python has no sitecustomize of its own
        pass
    finally:
        bootstrap.arm = arm


# -- wrappers of what frameworks call ----------------------------------------------------------------------------------

CONTEXT = types.ModuleType("tensorflow.python.eager.context")
vars(CONTEXT)["executing_eagerly"] = lambda: True
sys.modules[CONTEXT.__name__] = CONTEXT
STACK = types.ModuleType("tensorflow.python.util.tf_stack")
_Entry = collections.namedtuple("_Entry", "filename name lineno")
vars(STACK)["extract_stack"] = lambda: [_Entry(e.filename, e.name, e.lineno) for e in traceback.extract_stack()]
sys.modules[STACK.__name__] = STACK


@drives("probes/tensorflow/eager_ops.py:_noting")
def _(batch: Foreign) -> None:
    ops = module("probes/tensorflow/eager_ops.py")
    same = module("core/same_ops.py").SameOps(Thing, lambda _: False, returns, {})
    look = module("core/op_look.py").Look(State.now, State.thread(), 100, same, lambda: "")
    ops._noting(State, look, returns, ops.fast_parts)(None, "MatMul", "", batch.shape)
    assert look.ops == 1


@drives("probes/onnxruntime/inference.py:_wrap_async")
def _(batch: Foreign) -> None:
    inference, waiting = module("probes/onnxruntime/inference.py"), []
    for original in (lambda *args: waiting.append(args[3]), raises):
        for callback in (returns, raises):
            with contextlib.suppress(ValueError):
                asked = inference._wrap_async(State, original, inference.Models(State))
                asked(batch, None, {"x": batch}, callback, batch)
            with contextlib.suppress(ValueError, IndexError):
                waiting.pop()([batch], batch, "")


@drives("probes/keras/keras_batches.py:_wrap_logs")
def _(batch: Foreign) -> None:
    for original in (returns, raises):
        with contextlib.suppress(ValueError):
            module("probes/keras/keras_batches.py")._wrap_logs(State, original)({"loss": batch})


wrapper("probes/keras/keras_loops.py:_wrap", lambda _: "predict_on_batch")
wrapper("probes/keras/model_calls.py:_wrap_call")
wrapper("probes/keras/model_calls.py:_wrap_apply")
wrapper("probes/onnxruntime/inference.py:_wrap_run", lambda m: m.Models(State), lambda _: "feeds", lambda _: 0)
wrapper("probes/onnxruntime/inference.py:_wrap_making", lambda m: m.Models(State))
wrapper("probes/tensorflow/building.py:_wrap", lambda _: "build", lambda _: "role")
wrapper("probes/tensorflow/eager_turns.py:_noting", lambda _: [], state=False)
wrapper("probes/tensorflow/eager_turns.py:_wrap", lambda _: "op")
wrapper("probes/tensorflow/gradients.py:_wrap")
wrapper("probes/tensorflow/graph_nodes.py:_wrap")
wrapper("probes/tensorflow/saving.py:_wrap_save", lambda _: "save")
wrapper("probes/tensorflow/saving.py:_wrap_summary", lambda _: "write")
wrapper("probes/tensorflow/session.py:_wrap", lambda m: m.Fetches(State), fed=True)
wrapper("probes/reads.py:wrap", lambda _: "__array__", lambda m: m.Reads(State))
wrapper("probes/jax/jit_calls.py:_wrap")
wrapper(
    "probes/tensorflow/tf_function.py:_wrap_call",
    lambda _: WeakIds(),
    lambda m: lambda function: m.FunctionState(1, None, {}),
)
