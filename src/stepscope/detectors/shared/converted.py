"""Python that AutoGraph has converted together with the function in which it is written.

A function that TensorFlow traces is converted with all that is written in it, that of a py_function too: each of its
calls and each turn of its loops then goes through AutoGraph's Python. A loop of 100,000 calls of ``abs`` took 50 to 97
times as long (TensorFlow 2.21, findings/tf-numpy-function-nested-in-a-map-runs-converted.sh).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.tables.findings import Remedy

if TYPE_CHECKING:
    from stepscope.derive.input.pipeline_python import PythonFunction

ID = "written-outside"


def said(function: PythonFunction) -> str:
    """``, converted by AutoGraph``, to append to the name of the op that calls the function; "" if it was not."""
    return ", converted by AutoGraph" if function.name.converted else ""


def remedies(function: PythonFunction) -> tuple[Remedy, ...]:
    """Where the function is to be written instead; none if it was not converted."""
    if not function.name.converted:
        return ()
    text = f"write {function.users} at the module's level, not inside of the function that calls tf.{function.role}: "
    text += "it then runs as plain Python; converted, each of its calls and turns of loops goes through AutoGraph"
    return (Remedy(id=ID, text=text),)
