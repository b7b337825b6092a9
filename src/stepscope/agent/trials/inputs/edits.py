"""input-edits:FILE:EDIT;EDIT...: the calls that make a tf.data dataset in another order, and with others.

An edit names calls of the program by method and line, the second of several alike on a line by ``map@15#2``:

- ``filter@16<map@15``: the first call comes before the second one;
- ``map@15+cache``, ``batch@17+prefetch``: a cache, or a prefetch, after the call;
- ``map@15+parallel``: the call has ``num_parallel_calls=tf.data.AUTOTUNE``;
- ``-cache@13``: the call is left out.
"""

from __future__ import annotations

import functools
import os
import re
from typing import TYPE_CHECKING

from stepscope.agent.trials.inputs import feeds, held
from stepscope.agent.trials.inputs.chain import SOURCE, DatasetChains
from stepscope.agent.trials.inputs.pipelines import AUTOTUNE, filled

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect
    from stepscope.agent.trials.inputs.chain import ChainCall

_CALL = r"([a-z_]+)(@[0-9]+(?:#[0-9]+)?)"
_MOVE, _ADD, _REMOVE = (re.compile(text + r"\Z") for text in (_CALL + "<" + _CALL, _CALL + r"\+(\w+)", "-" + _CALL))
_WORDS = ("cache", "prefetch", "parallel")
_ALIKE = {SOURCE: "flat_map"}
"""A dataset from a generator is one of that class: reports name it by either."""


class Edit:
    """One edit: what is done with which call. ``other``: the call before which it moves; "": it stays."""

    __slots__ = ("call", "other", "what")

    def __init__(self, text: str) -> None:
        """Raises ValueError if the text is no edit."""
        moved, added, removed = _MOVE.match(text), _ADD.match(text), _REMOVE.match(text)
        found = moved or added or removed
        if found is None or (added is not None and added.group(3) not in _WORDS):
            raise ValueError(
                "input-edits: %s; expected METHOD@LINE<METHOD@LINE, METHOD@LINE+cache, +prefetch or +parallel, or "
                "-METHOD@LINE" % text
            )
        self.call = _same_method(found.group(1)) + found.group(2)
        self.other = _same_method(moved.group(3)) + moved.group(4) if moved else ""
        self.what = "move" if moved else "remove" if added is None else added.group(3)


class _Stage:
    """One call of the chain to be made."""

    __slots__ = ("again", "name", "parallel")

    def __init__(self, name: str, again: Callable[..., Foreign]) -> None:
        self.name = name
        self.again = again
        self.parallel = False

    def made(self, dataset: Foreign) -> Foreign:
        """What it makes of a dataset."""
        return self.again(dataset, num_parallel_calls=AUTOTUNE) if self.parallel else self.again(dataset)


class Edits:
    """The edits of one file's chains."""

    def __init__(self, argument: str) -> None:
        """``argument``: FILE:EDIT;EDIT... Raises ValueError if it is not."""
        self._file, _, edits = argument.rpartition(":")
        if not self._file:
            raise ValueError("input-edits:%s; expected FILE:EDIT;EDIT..." % argument)
        self._edits = [Edit(text) for text in edits.split(";")]

    def missing(self, calls: list[ChainCall]) -> str:
        """The first call that is named and not in a chain, or there more than once; "" if there is none."""
        mine = self._names(calls)
        for edit in self._edits:
            for wanted in filter(None, (edit.call, edit.other)):
                if wanted not in mine:
                    return wanted + (" is called more than once" if wanted + "#1" in mine else " isn't called")
        return ""

    def made(self, calls: list[ChainCall]) -> list[_Stage]:
        """The calls as they are with the edits. Those are in the chain, see ``missing``."""
        stages = [_Stage(name, calls[at].remake or _same) for at, name in enumerate(self._names(calls))]
        for edit in self._edits:
            at = next(i for i, stage in enumerate(stages) if stage.name == edit.call)
            if edit.other:
                stage = stages.pop(at)
                stages.insert(next(i for i, other in enumerate(stages) if other.name == edit.other), stage)
            elif edit.what == "remove":
                del stages[at]
            elif edit.what == "parallel":
                stages[at].parallel = True
            else:
                stages.insert(at + 1, _Stage(edit.what, _cache if edit.what == "cache" else _prefetch))
        return stages

    def _names(self, calls: list[ChainCall]) -> list[str]:
        """What each call is named; those of other files cannot be named."""
        plain = [
            "%s@%d" % (_same_method(call.method), call.line) if self._is_file(call.file) else call.method
            for call in calls
        ]
        return [
            name + ("#%d" % (plain[:at].count(name) + 1) if "@" in name and plain.count(name) > 1 else "")
            for at, name in enumerate(plain)
        ]

    def _is_file(self, path: str) -> bool:
        return path == self._file or path.endswith(os.sep + self._file.lstrip("./"))


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold."""
    edits, chains = Edits(effect.argument), DatasetChains()
    return [*chains.targets, *feeds.targets(effect, functools.partial(_edited, effect, edits, chains))]


def _edited(effect: Effect, edits: Edits, chains: DatasetChains, dataset: Foreign) -> Foreign:
    """``dataset`` with the edits, its caches full; None if that cannot be."""
    made, calls = chains.calls(dataset)
    missing = edits.missing(calls)
    if missing:
        effect.missed("in the dataset that is consumed, %s" % missing)
        return None
    for stage in edits.made(calls):
        made = stage.made(made)
        if (
            stage.name.partition("@")[0] == "cache"
            and int(made.cardinality()) != held.INFINITE
            and not filled(effect, made)
        ):
            return None
    if made.element_spec != dataset.element_spec:
        effect.missed("with the edits, the elements are others: %s" % (made.element_spec,))
        return None
    return made


def _same_method(method: str) -> str:
    return _ALIKE.get(method, method)


def _same(dataset: Foreign) -> Foreign:
    """What begins the chain stays."""
    return dataset


def _cache(dataset: Foreign) -> Foreign:
    return dataset.cache()


def _prefetch(dataset: Foreign) -> Foreign:
    return dataset.prefetch(AUTOTUNE)
