"""Why a tf.function was traced again: the difference between two of TensorFlow's function types.

Works on the public shape of ``tensorflow.core.function.polymorphism.FunctionType`` by duck typing: Literal has
``value``, Tuple ``components``, List ``components_tuple`` (a Tuple), Dict ``mapping``, Weakref ``_ref``; what has
``dtype`` and ``shape`` is a tensor spec; what has ``_element_spec`` an iterator or dataset spec.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepscope.agent.core.foreign import Foreign

TEXT_LIMIT = 120
PLAIN = {"Literal": "python-value", "Weakref": "object"}


def text_of(value: Foreign, limit: int = TEXT_LIMIT) -> str:
    """Short text of a type; never raises."""
    try:
        text = _text(value)
    except Exception as error:
        text = "<%s: %s>" % (type(value).__name__, error)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _text(value: Foreign) -> str:
    kind = type(value).__name__
    if kind == "Literal":
        return repr(value.value)
    if kind == "Weakref":
        target = value._ref()
        return "object of %s" % (type(target).__name__ if target is not None else "a class that is gone")
    if kind == "TensorSpec":
        return "%s%s" % (getattr(value.dtype, "name", value.dtype), value.shape)
    return str(value)


def change(before: Foreign, after: Foreign) -> tuple[str, str, str, str]:
    """(cause, argument, before, after); cause as in ``model.log.events.Traced``."""
    try:
        return _change(before, after)
    except Exception as error:
        return "other", "", text_of(before), "%s (%s)" % (text_of(after), error)


def _change(before: Foreign, after: Foreign) -> tuple[str, str, str, str]:
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


def _differ(was: Foreign, now: Foreign, path: str) -> tuple[str, str, Foreign, Foreign] | None:
    """The first difference below ``path``: (cause, path, before, after)."""
    if _same(was, now):
        return None
    kind = type(was).__name__
    left, right = _children(was), _children(now)
    if kind != type(now).__name__ or list(left) != list(right):
        return "structure", path, was, now
    if kind in PLAIN:
        return PLAIN[kind], path, was, now
    for key, child in left.items():
        found = _differ(child, right[key], path + key)
        if found is not None:
            return found
    return _leaf(was, now, path)


def _same(was: Foreign, now: Foreign) -> bool:
    if type(was).__name__ == "Weakref" and type(now).__name__ == "Weakref":
        left, right = was._ref(), now._ref()
        return left is not None and left is right
    return bool(was == now)


def _leaf(was: Foreign, now: Foreign, path: str) -> tuple[str, str, Foreign, Foreign]:
    if hasattr(was, "dtype") and was.dtype != getattr(now, "dtype", None):
        return "dtype", path, was, now
    if hasattr(was, "shape") and str(was.shape) != str(getattr(now, "shape", None)):
        return "shape", path, was, now
    return "structure", path, was, now


def _children(value: Foreign) -> dict[str, Foreign]:
    """Parts of a composite by path; empty for anything else."""
    if isinstance(value, (list, tuple)):
        return {"[%d]" % i: part for i, part in enumerate(value)}
    if isinstance(value, dict):
        return {"[%r]" % (key,): part for key, part in value.items()}
    for attribute in ("components", "components_tuple", "mapping", "attributes", "named_attributes"):
        inner = getattr(value, attribute, None)
        if inner is not None and not callable(inner):
            return _children(inner)
    element = getattr(value, "_element_spec", None)
    return {"": element} if element is not None else {}
