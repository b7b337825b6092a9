"""One thing that can be changed in a running job; ``experiments.interventions`` lists all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from stepscope.model.report.components import ComponentName

TENSORFLOW = frozenset({"tensorflow"})
KERAS = frozenset({"tensorflow", "keras"})
TF_DATA = frozenset({"tf.data"})
ANY: frozenset[str] = frozenset()


class Intervention(Struct, frozen=True, kw_only=True):
    """One thing that can be changed in a running job."""

    name: str
    """Name as it is typed."""
    argument: str = ""
    """Meaning of the argument after the colon; "" if it takes none."""
    text: str
    """What it does, in one sentence."""
    limits: str
    """What it cannot do, or where it misleads."""
    kind: Literal["gain", "ceiling", "look"]
    """Kind of its result: a gain can be kept, a ceiling is what no fix of that part can exceed, a look has no time."""
    keeps_results: bool
    """Whether the job computes the same as without it, but for rounding and the order of random numbers."""
    lasting: str
    """Line or edit that makes it permanent, with ARGUMENT for the argument; for a ceiling, what to look at."""
    lifts: frozenset[ComponentName]
    """Components of the step that it removes or shortens."""
    on: frozenset[str]
    """Parts of a job that it can change (``model.frameworks``); empty: any Python program."""


def made(
    kind: Literal["gain", "ceiling", "look"],
    name: str,
    *lifts: ComponentName,
    text: str,
    limits: str,
    lasting: str,
    argument: str = "",
    keeps: bool = False,
    on: frozenset[str] = TENSORFLOW,
) -> Intervention:
    """An intervention; ``lifts`` by position."""
    return Intervention(
        name=name,
        argument=argument,
        text=text,
        limits=limits,
        kind=kind,
        keeps_results=keeps,
        lasting=lasting,
        lifts=frozenset(lifts),
        on=on,
    )
