"""Values of command-line options: attributes of the result of ``argparse``, by the arguments added.

Only the file that reads the option is searched; a parser set up in another file stays unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from stepscope.check.inference import signatures as sig
from stepscope.check.inference.tags import UNKNOWN_VALUE, Tag, Value, join
from stepscope.check.inference.values import many
from stepscope.check.source.syntax import last_word

_TYPES = {"int": sig.SCALAR, "float": sig.SCALAR, "complex": sig.SCALAR, "str": sig.STRING, "bool": sig.BOOL}
_ACTIONS = {
    "store_true": sig.BOOL,
    "store_false": sig.BOOL,
    "BooleanOptionalAction": sig.BOOL,
    "count": sig.SCALAR,
}


def option(added: Iterable[ast.Call], name: str, value: Callable[[ast.expr], Value]) -> Value:
    """The value of ``args.name``.

    Args:
        added: the file's calls of ``add_argument``.
        name: the attribute.
        value: what is known about an expression.
    """
    return join(_value(call, value) for call in added if _destination(call) == name)


def _destination(call: ast.Call) -> str:
    """The attribute of an argument; "" if the source does not state it."""
    given = next((k.value for k in call.keywords if k.arg == "dest"), None)
    if given is not None:
        return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""
    names = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    chosen = next((n for n in names if n.startswith("--")), names[0] if names else "")
    return chosen.lstrip("-").replace("-", "_") if chosen.startswith("-") else chosen


def _value(call: ast.Call, value: Callable[[ast.expr], Value]) -> Value:
    given = {k.arg: k.value for k in call.keywords if k.arg}
    if "action" in given:
        action = given["action"]
        word = str(action.value) if isinstance(action, ast.Constant) else last_word(action)
        if word != "store":
            return _ACTIONS.get(word, UNKNOWN_VALUE)
    if "type" in given:
        one = _TYPES.get(given["type"].id, UNKNOWN_VALUE) if isinstance(given["type"], ast.Name) else UNKNOWN_VALUE
    else:
        said = value(given["default"]) if "default" in given and "nargs" not in given else sig.STRING
        one = sig.STRING if said.tag is Tag.NONE else said
    return many(one) if "nargs" in given and _several(given["nargs"]) else one


def _several(nargs: ast.expr) -> bool:
    return not (isinstance(nargs, ast.Constant) and nargs.value == "?")
