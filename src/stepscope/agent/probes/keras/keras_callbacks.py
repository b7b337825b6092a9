"""Callback hooks of Keras: the whole hook (HOOK), and each callback's own part of it (CALLBACK).

A callback's hook is wrapped in the class that defines it, so that Keras' own test for overridden hooks (Keras 3 and 2:
the ``_is_default`` mark of the base methods) sees what it saw before. Its name contains the class that the user made:
classes that inherit the same hook are distinguished.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

from stepscope.agent.probes.common import shared
from stepscope.agent.probes.support import SHORT_NS, defined, drop_our_frame, lacking, report
from stepscope.wire.kinds import Flag, Kind
from stepscope.wire.ring import count_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Heirs = dict[tuple[type, str], dict[type, int]]
    """(class that defines a hook, hook) -> name ids by the class of the callback that inherits it."""

HOOKS = (
    "on_epoch_begin",
    "on_epoch_end",
    "on_batch_begin",
    "on_batch_end",
    "on_train_begin",
    "on_train_end",
    "on_test_begin",
    "on_test_end",
    "on_predict_begin",
    "on_predict_end",
    "on_train_batch_begin",
    "on_train_batch_end",
    "on_test_batch_begin",
    "on_test_batch_end",
    "on_predict_batch_begin",
    "on_predict_batch_end",
)
BATCH_BEGINS = frozenset(("on_train_batch_begin", "on_test_batch_begin", "on_predict_batch_begin"))
BATCH = "_batch_"
MARK = "__stepscope_callback__"


def attach(state: AgentState, module: Foreign) -> None:
    """Patch ``CallbackList`` of ``module``."""
    cls = getattr(module, "CallbackList", None)
    if cls is not None and cls.__module__ != module.__name__:
        return
    why = "no CallbackList" if cls is None else lacking(cls, "__init__", ("self", "callbacks"))
    if why:
        report(state, "keras_callbacks:%s" % module.__name__, why)
        return
    for hook in HOOKS:
        if hook in cls.__dict__ and not lacking(cls, hook, ("self",)):
            state.patch(cls, hook, _wrap_list(state, cls.__dict__[hook], hook), _rests(hook, Kind.HOOK))
    heirs: Heirs = {}
    _adopt_on(state, cls, "set_model", getattr(module, "Callback", None), heirs)
    _adopt_on(state, cls, "append", getattr(module, "Callback", None), heirs)
    report(state, "keras_callbacks:%s" % module.__name__)


def _wrap_list(state: AgentState, original: Foreign, hook: str) -> Callable[..., Foreign]:
    if BATCH in hook and _takes_batch(original):
        return _wrap_batch(state, original, hook, state.name(("hook", hook), hook, hook=hook), {}, whole=True)
    common = shared(state)
    local = common.local
    name = state.name(("hook", hook), hook, hook=hook)
    kind = int(Kind.HOOK)
    nested = int(Flag.NESTED)
    now = state.now
    always = "epoch" in hook

    @functools.wraps(original)
    def on_hook(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        position = args[0] if args and isinstance(args[0], int) else 0
        me = local.me
        if always and me.loop is not None:
            _epoch(common, me.loop, hook)
        depth = me.hook
        me.hook = depth + 1
        flags = nested if depth else 0
        start = now()
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            flags |= drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            me.hook = depth
            if spent >= SHORT_NS or always:
                state.write(start, spent, position, name, kind, flags, state.thread())
            else:
                state.short(name, kind, start, spent)

    return on_hook


def _rests(hook: str, kind: Kind) -> tuple[int, None] | None:
    """(kind, no light replacement) for hooks of batches, which rest when steps are short; None for other hooks."""
    return (int(kind), None) if BATCH in hook else None


def _takes_batch(function: Foreign) -> bool:
    """Whether it is declared as ``(self, batch, logs=None)``: a wrapper without stars saves 0.1 us a step."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or code.co_kwonlyargcount:
        return False
    names = code.co_varnames[: code.co_argcount]
    return names == ("self", "batch", "logs") and len(function.__defaults__ or ()) == 1


def _wrap_batch(
    state: AgentState, original: Foreign, hook: str, name: int, names: dict[type, int], *, whole: bool
) -> Callable[..., Foreign]:
    """Wrap a batch hook: of the list (``whole``) or of one callback. Hot: several in every step.

    ``names``: name ids by the class of the callback, for inherited hooks.
    """
    local = shared(state).local
    kind = int(Kind.HOOK if whole else Kind.CALLBACK)
    nested = int(Flag.NESTED)
    now = state.now
    write = state.write
    short = state.short
    counted = state.records.counted
    key = count_key(name, kind, 0)
    begins = whole and hook in BATCH_BEGINS
    depth_alone = 0 if whole else 1

    @functools.wraps(original)
    def on_batch(self: Foreign, batch: Foreign, logs: Foreign = None) -> Foreign:
        me = local.me
        if begins and me.loop is not None:
            me.loop.batch_at = batch
        depth = me.hook
        me.hook = depth + 1
        flags = nested if depth > depth_alone else 0
        start = now()
        try:
            return original(self, batch, logs)
        except BaseException as error:
            flags |= drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            me.hook = depth
            me.thread = thread = me.thread or state.thread()
            who, slot = name, key
            if names:
                who = names.get(type(self), name)
                slot = count_key(who, kind, 0)
            if spent >= SHORT_NS:
                write(start, spent, batch if isinstance(batch, int) else 0, who, kind, flags, thread)
            else:
                entry = counted.get(slot | thread << 8)
                if entry is None or entry.counted == entry.reported:
                    short(who, kind, start, spent)
                else:
                    entry.counted += 1
                    entry.total_ns += spent

    return on_batch


def _epoch(common: Foreign, loop: Foreign, hook: str) -> None:
    if hook == "on_epoch_begin":
        loop.epochs += 1
    elif loop.consumed and common.read_models is not None:
        common.read_models(loop)


def _adopt_on(state: AgentState, cls: Foreign, method: str, base: Foreign, heirs: Heirs) -> None:
    """Patch ``method`` of a list of callbacks so that their hooks get wrapped first."""
    original = cls.__dict__.get(method)
    if original is None:
        return

    @functools.wraps(original)
    def adopting(self: Foreign, *args: Foreign, **kwargs: Foreign) -> Foreign:
        with state.guard("keras_callbacks.adopt"):
            for callback in [*self.callbacks, *(args if method == "append" else ())]:
                _adopt(state, callback, base, heirs)
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise

    state.patch(cls, method, adopting)


def _adopt(state: AgentState, callback: Foreign, base: Foreign, heirs: Heirs) -> None:
    classes = [c for c in type(callback).__mro__[:-1] if c is not base and c.__name__ != "Callback"]
    for hook in HOOKS:
        inherited = False
        for cls in classes:
            method = cls.__dict__.get(hook)
            if not callable(method) or getattr(method, "_is_default", False):
                continue
            names = heirs.setdefault((cls, hook), {})
            if not hasattr(method, MARK):
                wrapper = _wrap_hook(state, method, hook, cls.__name__, names)
                state.patch(cls, hook, wrapper, _rests(hook, Kind.CALLBACK))
            if not inherited and cls is not type(callback) and type(callback) not in names:
                names[type(callback)] = _name(state, type(callback).__name__, hook, method)
            inherited = True
        method = getattr(callback, "__dict__", {}).get(hook)
        if callable(method) and not hasattr(method, MARK):
            setattr(callback, hook, _wrap_hook(state, method, hook, type(callback).__name__, {}, bound=True))


def _name(state: AgentState, cls: str, hook: str, method: Foreign) -> int:
    text = "%s.%s" % (cls, hook)
    where = defined(method)
    return state.name(("callback", text, where["file"], where["line"]), text, hook=hook, **where)


def _wrap_hook(
    state: AgentState, original: Foreign, hook: str, cls: str, names: dict[type, int], *, bound: bool = False
) -> Callable[..., Foreign]:
    local = shared(state).local
    name = _name(state, cls, hook, original)
    if not bound and BATCH in hook and _takes_batch(original):
        wrapper = _wrap_batch(state, original, hook, name, names, whole=False)
        setattr(wrapper, MARK, True)
        return wrapper
    kind = int(Kind.CALLBACK)
    nested = int(Flag.NESTED)
    now = state.now
    write = state.write
    short = state.short
    thread = state.thread
    always = "epoch" in hook
    at = 0 if bound else 1

    @functools.wraps(original)
    def on_hook(*args: Foreign, **kwargs: Foreign) -> Foreign:
        me = local.me
        depth = me.hook
        me.hook = depth + 1
        flags = nested if depth > 1 else 0
        start = now()
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            flags |= drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            me.hook = depth
            who = names.get(type(args[0]), name) if names else name
            if spent >= SHORT_NS or always:
                position = args[at] if len(args) > at and isinstance(args[at], int) else 0
                write(start, spent, position, who, kind, flags, thread())
            else:
                short(who, kind, start, spent)

    setattr(on_hook, MARK, True)
    return on_hook


TARGETS = (
    ("keras.src.callbacks.callback_list", attach),
    ("keras.src.callbacks", attach),
    ("tf_keras.src.callbacks", attach),
)
