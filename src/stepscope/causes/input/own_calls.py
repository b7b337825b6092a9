"""Which datasets of a pipeline are made by a call that stands in the user's text.

A dataset has the line of the user's from which it was made. That line may be ``model.fit(x, y)``, and the dataset one
that Keras made: no edit of the line changes it.

Serves the report's input bound.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stepscope.causes.input.source_change import methods
from stepscope.derive.python import loop_source

if TYPE_CHECKING:
    from stepscope.derive.steps_view import StepsView
    from stepscope.model.log.events import DatasetMade

ANY = "apply"
"""The method that makes whatever its argument makes."""


def build(view: StepsView) -> frozenset[int]:
    """Their ids. Of a file whose text is not in the session all are counted."""
    made = [dataset for dataset in view.pipeline.datasets if dataset.file]
    calls = {file: _calls(view.source_of(file)) for file in {dataset.file for dataset in made}}
    return frozenset(dataset.id for dataset in made if _stands(dataset, calls[dataset.file]))


def _stands(made: DatasetMade, calls: dict[int, set[str]] | None) -> bool:
    names = {*methods(made), made.cls.removeprefix("_").removesuffix("V2"), ANY}
    return calls is None or bool(names & calls.get(made.line, set()))


def _calls(source: str | None) -> dict[int, set[str]] | None:
    """Last words of the functions that are called, by every line of each call; None: no text, or none that parses.

    Python before 3.11 tells the line on which a call begins, later ones that of the method's name.
    """
    tree = loop_source.parsed(source) if source is not None else None
    if tree is None:
        return None
    found: dict[int, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            word = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            for line in {node.lineno, node.func.end_lineno or node.lineno}:
                found.setdefault(line, set()).add(word)
    return found
