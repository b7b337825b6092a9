"""The trial that makes the edits of the input in the running job: ``agent.trials.inputs.edits`` reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.input import source_change

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stepscope.causes.input.input_bound import Edit
    from stepscope.causes.input.source_change import SourceChange
    from stepscope.derive.view import SessionView
    from stepscope.model.log.events import DatasetMade

NAME = "input-edits"
_WORDS = {"cache": "cache", "prefetch": "prefetch", "num_parallel_calls": "parallel"}


def of(view: SessionView, edits: Iterable[Edit], ordinals: Mapping[int, tuple[int, int]]) -> str:
    """The trial of all edits together, as ``whatif --try`` takes it; "" if one has no call or they span files.

    ``ordinals``: see ``chains.ordinals``.
    """
    made = tuple(edits)
    changes = [change for edit in made for change in edit.changes]
    files = {one.file for change in changes for one in (change.made, change.other) if one is not None}
    if not changes or len(files) != 1 or any(not edit.changes for edit in made):
        return ""
    texts = ";".join(_text(change, ordinals) for change in changes)
    return f"{NAME}:{view.place(files.pop(), 1).file}:{texts}"


def _text(change: SourceChange, ordinals: Mapping[int, tuple[int, int]]) -> str:
    call = _call(change.made, ordinals)
    if change.kind == "move" and change.other is not None:
        return f"{call}<{_call(change.other, ordinals)}"
    if change.kind == "remove":
        return f"-{call}"
    word = change.text.partition("(")[0].partition("=")[0]
    return f"{call}+{_WORDS[word]}"


def _call(made: DatasetMade, ordinals: Mapping[int, tuple[int, int]]) -> str:
    at, count = ordinals.get(made.id, (1, 1))
    return f"{source_change.method(made)}@{made.line}{f'#{at}' if count > 1 else ''}"
