"""What ``stepscope whatif`` measured: public API, schema ``stepscope.whatif/1`` (additions only).

``docs/schemas/whatif-1.json`` is generated from these structs.
"""

from __future__ import annotations

from typing import Literal

from stepscope.model.structs import Struct

SCHEMA = "stepscope.whatif/1"

Measure = Literal["step", "run"]
"""step: mean time of a steady step. run: the whole run, of a program that makes no steps."""
Verdict = Literal["faster", "slower", "undecided"]


class WhatIfRun(Struct, frozen=True, kw_only=True):
    """One run of the program."""

    round: int
    """From 1."""
    remedy: str
    """What its environment was given; "": nothing, as it is."""
    ns: int
    """What was measured of it."""
    findings: tuple[str, ...] = ()
    """Codes, from severity low."""
    session: str


class WhatIfResult(Struct, frozen=True, kw_only=True):
    """What one remedy brings."""

    remedy: str
    text: str
    """What it does."""
    ns: int
    """Median over the rounds."""
    ratio: float
    """Time with it to time without: the geometric mean over the rounds' pairs. 0.91: 9 % less."""
    low: float
    high: float
    """The interval at 95 %, Student's t over the logarithms of the rounds' ratios."""
    verdict: Verdict
    """undecided: the interval holds 1."""
    gone: tuple[str, ...] = ()
    """Findings of every run without it and of none with it."""
    new: tuple[str, ...] = ()
    """Findings of every run with it and of none without."""
    note: str = ""
    """Why it was not in effect, where it was not."""


class WhatIfReport(Struct, frozen=True, kw_only=True):
    """A program as it is and with each remedy, in turn."""

    schema: str = SCHEMA
    version: str
    """Of stepscope."""
    command: tuple[str, ...]
    measure: Measure
    step: str = ""
    """What a step is: "Keras fit", "tf.function score" ..."""
    rounds: int
    ns: int
    """As it is: median over the rounds."""
    results: tuple[WhatIfResult, ...]
    runs: tuple[WhatIfRun, ...]
    """In the order in which they were made."""
    folder: str
    """Where the sessions and what the program printed lie."""
