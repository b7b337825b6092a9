"""The variables of TensorFlow that a Keras model, layer, optimizer or variable leads to.

Read past the classes, as ``agent.core.held`` reads: no code of the job, of Keras or of TensorFlow runs for it, but for
the device of a variable's handle.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.core.look_budget import Budget

ROOTS = ("keras", "tf_keras")
_VARIABLES = (
    "_trainable_variables",
    "_non_trainable_variables",
    "_trainable_weights",
    "_non_trainable_weights",
    "_variables",
)
"""Lists of variables: of layers in Keras 3 and 2, of optimizers."""
_PARTS = ("_layers", "_self_tracked_trackables")
"""Lists of layers, in Keras 3 and 2."""
_ASK_BYTES = 1 << 16
"""Size from which a variable's device is asked for: that takes longer than all the rest."""
_OPTIMIZERS = ("optimizer", "_optimizer")


def is_keras(cls: type) -> bool:
    """Whether a class is Keras', or derived from one of its."""
    return any(base.__module__.partition(".")[0] in ROOTS for base in cls.__mro__)


def attributes(value: Foreign) -> dict[str, Foreign]:
    """The dictionary of an object; empty for one without."""
    try:
        inside = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):  # no dictionary, or a class that is none of Python's
        return {}
    return inside if type(inside) is dict else {}


def variables(value: Foreign, budget: Budget) -> Iterator[tuple[Foreign, Foreign, str]]:
    """(variable of TensorFlow, Keras object that has it, path) of all that ``value`` leads to but those seen before."""
    inside = attributes(value)
    if "_value" in inside:
        budget.seen.add(id(value))
        yield inside["_value"], None, str(inside.get("_path", ""))
        return
    todo = [value]
    while todo and not budget.spent():
        one = todo.pop()
        if id(one) in budget.seen:
            continue
        budget.seen.add(id(one))
        inside = attributes(one)
        for key in _VARIABLES:
            for variable in _listed(inside.get(key)):
                if id(variable) in budget.seen or budget.spent():
                    continue
                parts = attributes(variable)
                if "_value" in parts:  # of Keras 3, around one of TensorFlow
                    budget.seen.add(id(variable))
                    yield parts["_value"], one, str(parts.get("_path", ""))
                else:
                    yield variable, one, str(parts.get("_handle_name", ""))
        todo += [part for key in _PARTS for part in _listed(inside.get(key))]
        todo[:0] = [inside[key] for key in _OPTIMIZERS if inside.get(key) is not None]  # after the layers


def sized(variable: Foreign) -> Optional[tuple[float, str, tuple[int, ...]]]:
    """(bytes, type, shape) of a variable of TensorFlow in the host's memory; None for any other value."""
    inside = attributes(variable)
    shape, dtype, handle = inside.get("_shape"), inside.get("_dtype"), inside.get("_handle")
    if dtype is None or handle is None or type(handle).__name__ != "EagerTensor":
        return None
    if inside.get("_in_graph_mode") is not False:
        return None
    dims = getattr(shape, "_dims", None)
    size = getattr(dtype, "size", None)
    if dims is None or not size:
        return None
    count = size
    for n in dims:
        count *= n or 0
    if count >= _ASK_BYTES and "GPU" in str(handle.device):
        return None
    return float(count), str(dtype.name), tuple(int(n or 0) for n in dims)


def _listed(value: Foreign) -> list[Foreign]:
    """The entries of a list, also where Keras or TensorFlow have wrapped it."""
    inner = attributes(value).get("_storage", value)
    if type(inner) is not list and type(inner).__module__.partition(".")[0] not in (*ROOTS, "tensorflow"):
        return []
    return list(list.__iter__(inner)) if isinstance(inner, list) else []
