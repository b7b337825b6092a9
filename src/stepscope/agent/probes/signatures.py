"""Why a tf.function was traced again: the difference between two of TensorFlow's function types.

Works on the public shape of ``tensorflow.core.function.polymorphism.FunctionType`` by duck typing: Literal has
``value``, List and Tuple have ``components`` (a tuple or list), Dict has ``mapping``, Weakref has ``_ref``; what has
``dtype`` and ``shape`` is a tensor spec; what has ``_element_spec`` an iterator or dataset spec.
"""

from __future__ import annotations

from typing import Any

TEXT_LIMIT = 120


def text_of(value: Any, limit: int = TEXT_LIMIT) -> str:
    """Short text of a type; never raises."""
    try:
        text = _text(value)
    except Exception as error:
        text = "<%s: %s>" % (type(value).__name__, error)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _text(value: Any) -> str:
    kind = type(value).__name__
    if kind == "Literal":
        return repr(value.value)
    if kind == "Weakref":
        target = value._ref()
        return "object of %s" % (type(target).__name__ if target is not None else "a class that is gone")
    if kind == "TensorSpec":
        return "%s%s" % (getattr(value.dtype, "name", value.dtype), value.shape)
    return str(value)


def change(before: Any, after: Any) -> tuple[str, str, str, str]:
    """(cause, argument, before, after); cause as in ``model.events.Traced``."""
    try:
        return _change(before, after)
    except Exception as error:
        return "other", "", text_of(before), "%s (%s)" % (text_of(after), error)


def _change(before: Any, after: Any) -> tuple[str, str, str, str]:
    old = {name: p.type_constraint for name, p in before.parameters.items()}
    new = {name: p.type_constraint for name, p in after.parameters.items()}
    if list(old) != list(new):
        return "structure", "", ", ".join(old)[:TEXT_LIMIT], ", ".join(new)[:TEXT_LIMIT]
    for name, was in old.items():
        found = _differ(was, new[name], name)
        if found is not None:
            cause, path, left, right = found
            return cause, path, text_of(left), text_of(right)
    return "other", "", text_of(before), text_of(after)


def _differ(was: Any, now: Any, path: str) -> tuple[str, str, Any, Any] | None:
    """The first difference below ``path``: (cause, path, before, after)."""
    if _same(was, now):
        return None
    kind = type(was).__name__
    if kind != type(now).__name__:
        return "structure", path, was, now
    if kind == "Literal":
        return "python-value", path, was, now
    if kind == "Weakref":
        return "object", path, was, now
    for children in (_sequence, _mapping, _element):
        pairs = children(was, now)
        if pairs is None:
            continue
        if pairs == "structure":
            return "structure", path, was, now
        for key, left, right in pairs:
            found = _differ(left, right, "%s%s" % (path, key))
            if found is not None:
                return found
    return _leaf(was, now, path)


def _same(was: Any, now: Any) -> bool:
    if type(was).__name__ == "Weakref" and type(now).__name__ == "Weakref":
        left, right = was._ref(), now._ref()
        return left is not None and left is right
    return bool(was == now)


def _leaf(was: Any, now: Any, path: str) -> tuple[str, str, Any, Any]:
    if hasattr(was, "dtype") and was.dtype != getattr(now, "dtype", None):
        return "dtype", path, was, now
    if hasattr(was, "shape") and str(was.shape) != str(getattr(now, "shape", None)):
        return "shape", path, was, now
    return "structure", path, was, now


def _sequence(was: Any, now: Any) -> Any:
    if isinstance(was, (list, tuple)):
        left, right = was, now
    else:
        left = getattr(was, "components_tuple", None) or getattr(was, "components", None)
        right = getattr(now, "components_tuple", None) or getattr(now, "components", None)
        if isinstance(left, dict) or not isinstance(left, (list, tuple)):
            wrapped = getattr(was, "components", None)
            if wrapped is None or isinstance(left, (list, tuple)):
                return None
            left, right = tuple(wrapped.components), tuple(now.components.components)
    if not isinstance(right, (list, tuple)) or len(left) != len(right):
        return "structure"
    return [("[%d]" % i, a, b) for i, (a, b) in enumerate(zip(left, right))]


def _mapping(was: Any, now: Any) -> Any:
    left = was if isinstance(was, dict) else getattr(was, "mapping", None)
    right = now if isinstance(now, dict) else getattr(now, "mapping", None)
    if not isinstance(left, dict):
        return None
    if not isinstance(right, dict) or set(left) != set(right):
        return "structure"
    return [("[%r]" % (k,), left[k], right[k]) for k in left]


def _element(was: Any, now: Any) -> Any:
    left = getattr(was, "_element_spec", None)
    if left is None:
        return None
    return [("", left, getattr(now, "_element_spec", None))]
