"""no-validation, no-metrics: fits run without their validation, models are compiled without their metrics."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stepscope.agent.trials.compile_settings import TRAINERS
from stepscope.agent.trials.support import KERAS_2, TRAINER, NamedArguments, replace, trainer_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign
    from stepscope.agent.state import AgentState
    from stepscope.agent.trials.effect import Effect

NOTHING: dict[str, tuple[str, dict[str, object]]] = {
    "no-validation": ("fit", {"validation_data": None, "validation_split": 0.0}),
    "no-metrics": ("compile", {"metrics": None, "weighted_metrics": None}),
}
"""By intervention: the method, and the values of its parameters that leave something out."""
LOSS = "loss"


def targets(effect: Effect) -> list[tuple[str, Callable[[AgentState, Foreign], object]]]:
    """Where it gets hold."""
    method, nothing = NOTHING[effect.name]
    effect.missed("no %s of Keras with %s" % (method, " or ".join(nothing)))
    dropped: list[str] = []
    attach = functools.partial(_attach, effect, method, nothing, dropped)
    modules = (TRAINER, *KERAS_2) if method == "fit" else TRAINERS
    found: list[tuple[str, Callable[[AgentState, Foreign], object]]] = [(module, attach) for module in modules]
    fill = functools.partial(_attach_fit, effect, dropped)
    return found if method == "fit" else [*found, *((module, fill) for module in (TRAINER, *KERAS_2))]


def _attach_fit(effect: Effect, dropped: list[str], state: AgentState, module: Foreign) -> None:
    """Fill the results of a fit whose model was compiled without metrics."""

    def make(original: Foreign) -> Foreign:
        def fit(*args: Foreign, **kwargs: Foreign) -> Foreign:
            result = original(*args, **kwargs)
            with effect.wall:
                history = getattr(result, "history", {})
                for name in dropped:
                    for before in ("", "val_"):
                        if before + LOSS in history:
                            history.setdefault(before + name, list(history[before + LOSS]))
            return result

        return fit

    replace(state, trainer_class(module), "fit", make)


def _names(metrics: Foreign) -> list[str]:
    """The names under which a fit reports metrics; a dict gives them by output."""
    if isinstance(metrics, dict):
        metrics = list(metrics.values())
    if isinstance(metrics, (list, tuple)):
        return [name for metric in metrics for name in _names(metric)]
    name = metrics if isinstance(metrics, str) else getattr(metrics, "name", None) or getattr(metrics, "__name__", "")
    return [str(name)] if name else []


def _attach(
    effect: Effect, method: str, nothing: dict[str, object], dropped: list[str], state: AgentState, module: Foreign
) -> None:
    def make(original: Foreign) -> Foreign:
        def call(*args: Foreign, **kwargs: Foreign) -> Foreign:
            before = effect.count
            with effect.wall:
                given = NamedArguments(original, args, kwargs)
                for name, value in nothing.items():
                    if given.get(name) is not None and given.get(name) != value:
                        dropped.extend(_names(given.get(name)) if method != "fit" else ())
                        given.set(name, value)
                        effect.took()
                args, kwargs = given.call
            result = original(*args, **kwargs)
            if effect.count > before and hasattr(result, "history"):
                with effect.wall:
                    _fill(result.history)
            return result

        return call

    replace(state, getattr(module, "Trainer", None) or trainer_class(module), method, make)


def _fill(history: Foreign) -> None:
    """Give a program that reads the results of the validation those of the training."""
    for name, values in list(history.items()):
        history.setdefault("val_" + name, list(values))
