"""The trial that makes the edits of the input in the running job: ``agent.trials.inputs.edits`` reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.causes.input import input_bound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.causes.input.input_bound import Edit, SourceChange
    from stepscope.derive.view import SessionView
    from stepscope.model.log.events import DatasetMade

NAME = "input-edits"
_WORDS = {"cache": "cache", "prefetch": "prefetch", "num_parallel_calls": "parallel"}


def of(view: SessionView, edits: Iterable[Edit]) -> str:
    """The trial of all edits together, as ``whatif --try`` takes it; "" if one has no call or they span files."""
    made = tuple(edits)
    changes = [change for edit in made for change in edit.changes]
    files = {one.file for change in changes for one in (change.made, change.other) if one is not None}
    if not changes or len(files) != 1 or any(not edit.changes for edit in made):
        return ""
    return f"{NAME}:{view.place(files.pop(), 1).file}:{';'.join(map(_text, changes))}"


def _text(change: SourceChange) -> str:
    call = _call(change.made)
    if change.kind == "move" and change.other is not None:
        return f"{call}<{_call(change.other)}"
    if change.kind == "remove":
        return f"-{call}"
    word = change.text.partition("(")[0].partition("=")[0]
    return f"{call}+{_WORDS[word]}"


def _call(made: DatasetMade) -> str:
    return f"{input_bound.method(made)}@{made.line}"
