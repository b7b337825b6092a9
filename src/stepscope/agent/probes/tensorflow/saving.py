"""Writing of checkpoints, weights and models (SAVE, outermost only) and of summaries (SUMMARY)."""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING

from stepscope.agent.probes.common import shared
from stepscope.agent.probes.support import SHORT_NS, Sites, drop_our_frame, lacking, report
from stepscope.wire.doing import Doing
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Attach = Callable[[AgentState, Foreign], None]

DOES = int(Doing.SAVING)
SUFFIXES = (".index", ".data-00000-of-00001")
"""Files of a checkpoint with one shard, after its prefix."""


def _attach_saves(owner: str, **roles: str) -> Attach:
    """An ``attach`` that wraps methods of ``owner`` (a class of the module; "" for the module itself)."""

    def attach(state: AgentState, module: Foreign) -> None:
        place = getattr(module, owner, None) if owner else module
        label = "saving:%s.%s" % (module.__name__, owner) if owner else "saving:%s" % module.__name__
        why = "no %s" % owner if place is None else ""
        for method, role in roles.items():
            missing = why or lacking(place, method)
            if not missing and method in vars(place):
                state.patch(place, method, _wrap_save(state, vars(place)[method], role))
            why = why or missing
        report(state, label, why)

    return attach


def _wrap_save(state: AgentState, original: Callable[..., Foreign], role: str) -> Callable[..., Foreign]:
    local = shared(state).local
    doing = state.records.doing
    sites = Sites(state, ("save", role), text="save " + role, role=role)
    now = state.now
    caller = sys._getframe
    kind = int(Kind.SAVE)

    @functools.wraps(original)
    def save(*args: Foreign, **kwargs: Foreign) -> Foreign:
        me = local.me
        if me.save:
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                drop_our_frame(error)
                raise
        me.save = 1
        before = doing.begin(DOES)
        flags = 0
        result: Foreign = None
        start = now()
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        else:
            return result
        finally:
            spent = now() - start
            me.save = 0
            doing.end(before)
            written = _bytes(result, args, kwargs)
            state.write(start, spent, written, sites.name(caller(1)), kind, flags, state.thread())

    return save


def _bytes(result: Foreign, args: tuple[Foreign, ...], kwargs: dict[str, Foreign]) -> int:
    """Size of the written files if one or two stat calls give it, else 0."""
    for candidate in (result, *args[1:3], kwargs.get("filepath"), kwargs.get("file_prefix"), *args[:1]):
        if isinstance(candidate, bytes):
            candidate = candidate.decode("utf-8", "replace")  # noqa: PLW2901 - the same path as text
        if not isinstance(candidate, (str, os.PathLike)):
            continue
        path = os.fspath(candidate)
        total = 0
        for name in (path, *(str(path) + suffix for suffix in SUFFIXES)):
            try:
                if os.path.isfile(name):
                    total += os.path.getsize(name)
            except (OSError, ValueError):
                return 0
        return total
    return 0


def _attach_summaries(owner: str, *methods: str) -> Attach:
    """An ``attach`` that wraps writers of summaries."""

    def attach(state: AgentState, module: Foreign) -> None:
        place = getattr(module, owner, None) if owner else module
        label = "saving.summary:%s.%s" % (module.__name__, owner)
        why = "no %s" % owner if place is None else ""
        for method in methods:
            missing = why or lacking(place, method)
            if not missing and method in vars(place):
                state.patch(place, method, _wrap_summary(state, vars(place)[method], method))
            why = why or missing
        report(state, label, why)

    return attach


def _wrap_summary(state: AgentState, original: Callable[..., Foreign], method: str) -> Callable[..., Foreign]:
    role = "flush" if method in ("flush", "close") else "write"
    sites = Sites(state, ("summary", role), text="summary " + role, role=role)
    short_name = state.name(("summary", role), "summary " + role, role=role)
    now = state.now
    caller = sys._getframe
    kind = int(Kind.SUMMARY)

    @functools.wraps(original)
    def summary(*args: Foreign, **kwargs: Foreign) -> Foreign:
        flags = 0
        start = now()
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            if spent >= SHORT_NS:
                state.write(start, spent, 0, sites.name(caller(1)), kind, flags, state.thread())
            else:
                state.short(short_name, kind, start, spent)

    return summary


TARGETS = (
    ("tensorflow.python.checkpoint.checkpoint", _attach_saves("Checkpoint", save="checkpoint", write="checkpoint")),
    ("tensorflow.python.checkpoint.checkpoint", _attach_saves("CheckpointV1", save="checkpoint", write="checkpoint")),
    ("tensorflow.python.checkpoint.checkpoint_management", _attach_saves("CheckpointManager", save="checkpoint")),
    ("tensorflow.python.training.saver", _attach_saves("Saver", save="checkpoint")),
    ("tensorflow.python.saved_model.save", _attach_saves("", save="saved_model")),
    ("keras.src.models.model", _attach_saves("Model", save="model", save_weights="weights")),
    ("keras.src.engine.training", _attach_saves("Model", save="model", save_weights="weights")),
    ("tf_keras.src.engine.training", _attach_saves("Model", save="model", save_weights="weights")),
    ("keras.src.saving.saving_api", _attach_saves("", save_model="model", save_weights="weights")),
    ("tf_keras.src.saving.saving_api", _attach_saves("", save_model="model", save_weights="weights")),
    ("tensorflow.python.ops.summary_ops_v2", _attach_summaries("", "write", "flush")),
    ("tensorflow.python.ops.summary_ops_v2", _attach_summaries("_ResourceSummaryWriter", "flush", "close")),
    ("tensorflow.python.summary.writer.writer", _attach_summaries("SummaryToEventTransformer", "add_summary")),
    ("tensorflow.python.summary.writer.writer", _attach_summaries("FileWriter", "flush", "close")),
)
