"""Python that AutoGraph has converted together with the function in which it is written.

A function that TensorFlow traces is converted with all that is written in it, that of a py_function too: each of its
calls and each turn of its loops then goes through AutoGraph's Python. A loop of 100,000 calls of ``abs`` took 50 to 97
times as long (TensorFlow 2.21, findings/tf-numpy-function-nested-in-a-map-runs-converted.sh). Without a loop it
makes few calls, and its conversion costs little.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stepscope.derive.python import loop_source
from stepscope.tables.findings import Remedy

if TYPE_CHECKING:
    from stepscope.derive.input.pipeline_python import PythonFunction
    from stepscope.derive.steps_view import StepsView

ID = "written-outside"
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def said(view: StepsView, function: PythonFunction) -> str:
    """``, converted by AutoGraph``, to append to the op that calls the function; "" if that costs little."""
    return ", converted by AutoGraph" if _costs(view, function) else ""


def remedies(view: StepsView, function: PythonFunction) -> tuple[Remedy, ...]:
    """Where the function is to be written instead; none if it was not converted, or that costs little."""
    if not _costs(view, function):
        return ()
    text = f"write {function.users} at the module's level, not inside of the function that calls tf.{function.role}: "
    text += "it then runs as plain Python; converted, each of its calls and turns of loops goes through AutoGraph"
    return (Remedy(id=ID, text=text),)


def _costs(view: StepsView, function: PythonFunction) -> bool:
    """Whether it was converted and has a loop."""
    name = function.name
    source = view.source_of(name.file) if name.converted else None
    tree = loop_source.parsed(source) if source else None
    return tree is not None and any(
        isinstance(node, _LOOPS) and name.line <= getattr(node, "lineno", name.line) <= name.end_line
        for node in ast.walk(tree)
    )
