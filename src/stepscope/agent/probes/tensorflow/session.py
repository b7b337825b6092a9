"""Session.run of compat.v1, by fetches; MonitoredSession and Estimator use it too.

A MonitoredSession calls its session with ``{"caller": the user's fetches, hook: additional fetches of that hook ...}``:
the run is named by the first; the others are logged with the name.

Threads of a QueueRunner run their enqueue op some hundred times for each step. Those runs fill a queue and are never a
step, and a record of each costs more than the budget: they are not measured (docs/decisions/0032-queue-runners.md).
"""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import TYPE_CHECKING

from stepscope.agent.capture.orders import RUN_METADATA
from stepscope.agent.capture.runs import SessionRuns
from stepscope.agent.core import frames
from stepscope.agent.core.feeds import Feeds
from stepscope.agent.core.weak_ids import WeakIds
from stepscope.agent.graphs.awaited_ops import AwaitedOps
from stepscope.agent.probes.common import inputs_of
from stepscope.agent.probes.support import Sites, drop_our_frame, examples, is_open, lacking, leaf, report
from stepscope.agent.shapes import LEAST_NS, shape_of, shapes_of
from stepscope.wire.kinds import Flag, Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState

    Method = Callable[..., Foreign]

MAX_NAMES = 200
"""Distinct fetches named separately; later ones are "other fetches"."""
MAX_CHANGES = 1_000
"""Changes logged between runs with and without the program's own trace."""
MANY_NEW = 16
"""New fetches of one line after which, if most of its runs have new ones, they are one name: they are its turns."""
MAX_MET = 50_000
"""Combinations of fetches and feeds known apart; later ones are not called first."""
MAX_PARTS = 6
MAX_TEXT = 120
OTHER = "other fetches"
CALLER = "caller"
_FIRST = int(Flag.FIRST)
NOTHING: tuple[str, ...] = ()
ENQUEUE = "QueueEnqueue"
"""Prefix of the types of ops that put elements into a queue."""
ENQUEUES = "enqueue"
"""Role of a run that does nothing else."""
QUEUE_RUNNER = "tensorflow.python.training.queue_runner_impl"


class Fetches:
    """Names of runs: by fetches and calling line."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._sites: dict[tuple[str, tuple[str, ...]], Sites] = {}
        self._texts = WeakIds()
        """Hooks -> (last fetches, their text)."""
        self.tracing = SessionRuns(state)
        self.recording = False
        """Whether the program has the newest run traced (RunOptions), which takes as long as a profiler."""
        self._changes = 0
        self.feeds = Feeds(state.now, state.log)
        self.inputs = inputs_of(state)
        self._lines: dict[tuple[Foreign, int], list[int]] = {}
        """Number of runs of each calling line, and of those whose fetches were new."""
        self._met: set[int] = set()
        """Hashes of what sessions have run: fetches and feeds."""
        self._other = Sites(state, ("session", OTHER), text=OTHER)

    def traced(self, original: Method, fetches: Foreign) -> Method:
        """The function to call for a run: ``original``, or one that also traces it if that is requested."""
        if type(fetches) is dict and CALLER in fetches:
            fetches = fetches[CALLER]
        return self.tracing.claim(original, fetched(fetches))

    def name(self, fetches: Foreign, frame: FrameType) -> int:
        """Id of the name of a run that ``frame`` calls."""
        added = NOTHING
        if type(fetches) is dict and CALLER in fetches:
            known = self._texts
            parts = []
            for hook, more in fetches.items():
                if type(hook) is not str:
                    last = known.get(hook)
                    parts.append(last[1] if last is not None and last[0] is more else self._told(hook, more))
            added = tuple(parts)
            fetches = fetches[CALLER]
            frame = _outside(frame)
        return self._named(fetched(fetches), added, fetches, frame).name(frame)

    def first(self, session: object, fetches: Foreign, feeds: Foreign) -> int:
        """FIRST if the session has not run these fetches with these feeds before, else 0. A graph keeps its tensors
        alive: what an id stands for lasts as long as the graph.
        """
        parts: list[object] = [id(session)]
        _collect_ids(fetches, parts)
        fed: list[object] = []
        _collect_ids(list(feeds) if feeds else [], fed)
        key = hash((frozenset(parts), frozenset(fed)))
        if key in self._met or len(self._met) >= MAX_MET:
            return 0
        self._met.add(key)
        return _FIRST

    def trace_of_user(self, options: Foreign, start: int, frame: FrameType) -> None:
        """Log that runs with full traces begin, or end: as a start or stop of the user's profiler."""
        recording = options is not None and int(getattr(options, "trace_level", 0)) > 0
        if recording == self.recording or self._changes >= MAX_CHANGES:
            return
        self.recording = recording
        self._changes += 1
        told: dict[str, object] = {"t": "profiler", "at": start, "action": "start" if recording else "stop"}
        if recording:
            file, function, line = leaf(frames.user_stack(1, frame))
            told.update(way=RUN_METADATA, file=file, function=function, line=line)
        self._state.log(told)

    def _told(self, hook: Foreign, more: Foreign) -> str:
        """Text of a hook's fetches; a hook usually fetches the same object each time, remembered while it lives."""
        text = "%s: %s" % (type(hook).__name__, fetched(more))
        with contextlib.suppress(TypeError):  # a hook that cannot be weakly referenced is asked each time
            self._texts.set(hook, (more, text))
        return text

    def _named(self, text: str, added: tuple[str, ...], fetches: object, frame: FrameType) -> Sites:
        sites = self._sites.get((text, added))
        line = self._lines.get((frame.f_code, frame.f_lasti))
        if line is None:
            line = self._lines[frame.f_code, frame.f_lasti] = [0, 0]
        line[0] += 1
        if sites is not None:
            return sites
        line[1] += 1
        changing = line[1] > MANY_NEW and 2 * line[1] > line[0]
        if changing or len(self._sites) >= MAX_NAMES:
            return self._sites.get((text, NOTHING), self._other)
        fields: dict[str, object] = {"added": list(added)} if added else {}
        if only_enqueues(fetches):
            fields["role"] = ENQUEUES
        sites = self._sites[text, added] = Sites(self._state, ("session", text, added), text=text, **fields)
        return sites


def _outside(frame: FrameType) -> FrameType:
    """The first frame outside the file of ``frame``: MonitoredSession wraps itself several times."""
    library = frame.f_code.co_filename
    while frame.f_back is not None and frame.f_code.co_filename == library:
        frame = frame.f_back
    return frame


def attach(state: AgentState, module: Foreign) -> None:
    """Patch ``BaseSession.run`` and ``make_callable``."""
    cls = getattr(module, "BaseSession", None)
    why = "no BaseSession" if cls is None else lacking(cls, "run", ("self", "fetches", "feed_dict"))
    if not why:
        names = Fetches(state)
        run = _wrap(state, cls.__dict__["run"], names)
        state.patch(cls, "run", run)
        state.hooks.on_tick(state.guard("session.awaited")(AwaitedOps(state, run.__code__).tick))
        if not lacking(cls, "run", ("self", "fetches", "feed_dict", "options", "run_metadata")):
            state.captures.tracers[RUN_METADATA] = names.tracing
        why = lacking(cls, "make_callable", ("self", "fetches", "feed_list", "accept_options"))
        if not why:
            state.patch(cls, "make_callable", _wrap_callables(state, cls.__dict__["make_callable"], names))
    report(state, "session", why)


def _wrap(state: AgentState, original: Method, names: Fetches) -> Method:
    now = state.now
    caller = sys._getframe
    kind = int(Kind.SESSION_RUN)
    tracing = names.tracing
    shapes = shapes_of(state)

    @functools.wraps(original)
    def run(self: object, fetches: Foreign, feed_dict: Foreign = None, *args: object, **kwargs: object) -> object:
        flags = 0
        call = original
        if tracing.task is not None:
            with state.guard("session.traced"):
                call = names.traced(original, fetches)
        start = now()
        try:
            return call(self, fetches, feed_dict, *args, **kwargs)
        except BaseException as error:
            flags = drop_our_frame(error)
            raise
        finally:
            spent = now() - start
            name = samples = 0
            try:
                name = names.name(fetches, caller(1))
                first = names.first(self, fetches, feed_dict)
                if feed_dict:
                    samples = fed(feed_dict)
                    if spent >= LEAST_NS and not flags:
                        flags = shapes.flags(shape_of(feed_dict))
                    names.feeds.note(name, feed_dict)
                flags |= first
                if feed_dict:
                    names.inputs.fed(feed_dict)
                if args or kwargs or names.recording:
                    names.trace_of_user(args[0] if args else kwargs.get("options"), start, caller(1))
            except Exception as error:
                state.lines.diagnostic("DX901", "session.name: %r" % error)
            state.write(start, spent, samples, name, kind, flags, state.thread())

    return run


def _wrap_callables(state: AgentState, original: Method, names: Fetches) -> Method:
    """Wrap ``make_callable``, which makes functions that bypass ``run``; those that take feeds call it."""
    now = state.now
    caller = sys._getframe
    kind = int(Kind.SESSION_RUN)

    @functools.wraps(original)
    def make_callable(
        self: object, fetches: Foreign, feed_list: Foreign = None, *args: object, **kwargs: object
    ) -> Foreign:
        try:
            made = original(self, fetches, feed_list, *args, **kwargs)
        except BaseException as error:
            drop_our_frame(error)
            raise
        if feed_list is not None or fills_a_queue(caller(1)):
            return made

        @functools.wraps(made)
        def measured(*args: object, **kwargs: object) -> object:
            flags = 0
            start = now()
            try:
                return made(*args, **kwargs)
            except BaseException as error:
                flags = drop_our_frame(error)
                raise
            finally:
                spent = now() - start
                name = 0
                try:
                    name = names.name(fetches, caller(1))
                except Exception as error:
                    state.lines.diagnostic("DX901", "session.callable: %r" % error)
                state.write(start, spent, 0, name, kind, flags, state.thread())

        return measured

    return make_callable


def fills_a_queue(frame: FrameType) -> bool:
    """Whether a thread of a QueueRunner is calling, with no user line on its stack. Checked once per thread."""
    asks: FrameType | None = frame
    while asks is not None:
        if asks.f_globals.get("__name__") == QUEUE_RUNNER:
            return not frames.user_stack(1, frame)
        asks = asks.f_back
    return False


def only_enqueues(fetches: object) -> bool:
    """Whether a run only puts elements into queues: it makes input, and is no step."""
    if isinstance(fetches, dict):
        fetches = list(fetches.values())
    if isinstance(fetches, (list, tuple)):
        return bool(fetches) and all(only_enqueues(part) for part in fetches)
    return str(getattr(fetches, "type", "")).startswith(ENQUEUE)


def fed(feed_dict: dict[object, object]) -> int:
    """Number of examples that a run is fed, 0 if unknown."""
    first = next(iter(feed_dict))
    return examples(list(feed_dict.values())) or examples([feed_dict[first]], batched=is_open(first))


def fetched(fetches: Foreign) -> str:
    """Stable short text of a run's fetches: names of operations and tensors, in the order given."""
    names: list[str] = []
    _collect(fetches, names)
    text = ", ".join(names[:MAX_PARTS])
    if len(names) > MAX_PARTS:
        text += ", ... (%d)" % len(names)
    return text[:MAX_TEXT]


def _collect_ids(fetches: Foreign, parts: list[object]) -> None:
    """Add what tells the parts of a run's fetches from others: names, and ids of tensors and operations. What is
    neither (an object of the user's that holds some) may be new in each run, and tells nothing.
    """
    if isinstance(fetches, (list, tuple)):
        for part in fetches:
            _collect_ids(part, parts)
    elif isinstance(fetches, dict):
        for part in fetches.values():
            _collect_ids(part, parts)
    elif isinstance(fetches, str):
        parts.append(fetches)
    elif hasattr(fetches, "graph"):
        parts.append(id(fetches))


def _collect(fetches: Foreign, names: list[str]) -> None:
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
