"""Session.run of compat.v1, by what it fetches; MonitoredSession and Estimator come down to it."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from stepscope.agent.probes.support import Sites, lacking, leading, leave, report
from stepscope.wire.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.state import AgentState

MAX_NAMES = 200
"""Distinct fetches told apart; what comes later is "other fetches"."""
MAX_PARTS = 6
MAX_TEXT = 120
OTHER = "other fetches"


def attach(state: AgentState, module: Any) -> None:
    """Patch ``BaseSession.run``."""
    cls = getattr(module, "BaseSession", None)
    why = "no BaseSession" if cls is None else lacking(cls, "run", ("self", "fetches", "feed_dict"))
    if not why:
        state.patch(cls, "run", _wrap(state, cls.__dict__["run"]))
    report(state, "session", why)


def _wrap(state: AgentState, original: Callable[..., Any]) -> Callable[..., Any]:
    by_text: dict[str, Sites] = {}
    other = Sites(state, ("session", OTHER), text=OTHER)
    now = state.now
    caller = sys._getframe
    kind = int(Kind.SESSION_RUN)

    def name_of(fetches: Any, frame: Any) -> int:
        text = fetched(fetches)
        sites = by_text.get(text)
        if sites is None:
            if len(by_text) >= MAX_NAMES:
                return other.name(frame)
            sites = by_text[text] = Sites(state, ("session", text), text=text)
        return sites.name(frame)

    @functools.wraps(original)
    def run(self: Any, fetches: Any, feed_dict: Any = None, *args: Any, **kwargs: Any) -> Any:
        flags = 0
        start = now()
        try:
            return original(self, fetches, feed_dict, *args, **kwargs)
        except BaseException as error:
            flags = leave(error)
            raise
        finally:
            spent = now() - start
            name = samples = 0
            try:
                name = name_of(fetches, caller(1))
                samples = leading(list(feed_dict.values())[:2]) if feed_dict else 0
            except Exception as error:
                state.diagnostic("DX901", "session.name: %r" % error)
            state.write(start, spent, samples, name, kind, flags, state.thread())

    return run


def fetched(fetches: Any) -> str:
    """Stable short text of what a run fetches: names of operations and tensors, sorted where order means nothing."""
    names: list[str] = []
    _collect(fetches, names)
    text = ", ".join(names[:MAX_PARTS])
    if len(names) > MAX_PARTS:
        text += ", ... (%d)" % len(names)
    return text[:MAX_TEXT]


def _collect(fetches: Any, names: list[str]) -> None:
    if isinstance(fetches, (list, tuple)):
        for part in fetches:
            _collect(part, names)
    elif isinstance(fetches, dict):
        for part in fetches.values():
            _collect(part, names)
    elif isinstance(fetches, str):
        names.append(fetches)
    else:
        found = getattr(fetches, "name", None)
        names.append(found if isinstance(found, str) else type(fetches).__name__)


TARGETS = (("tensorflow.python.client.session", attach),)
