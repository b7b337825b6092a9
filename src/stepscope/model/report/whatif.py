"""The measurements of ``stepscope whatif``: public API, schema ``stepscope.whatif/1`` (additions only).

``docs/schemas/whatif-1.json`` is generated from these structs.
"""

from __future__ import annotations

from typing import Literal

from stepscope.model.structs import Struct

SCHEMA = "stepscope.whatif/1"

Measure = Literal["step", "run"]
"""Measure. step: mean time of a steady step. run: the whole run, for a program without steps."""
Verdict = Literal["faster", "slower", "undecided"]


class WhatIfRun(Struct, frozen=True, kw_only=True):
    """One run of the program."""

    round: int
    """Round, from 1."""
    remedy: str
    """Remedy in its environment; "": none."""
    ns: int
    """Measured time."""
    findings: tuple[str, ...] = ()
    """Codes of findings, from severity low."""
    session: str


class WhatIfResult(Struct, frozen=True, kw_only=True):
    """The effect of one remedy."""

    remedy: str
    text: str
    """Effect in words."""
    ns: int
    """Median over the rounds."""
    ratio: float
    """Time with it over time without: the geometric mean over the rounds' pairs. 0.91: 9 % less."""
    low: float
    high: float
    """Upper end of the interval at 95 %, Student's t over the logarithms of the rounds' ratios."""
    verdict: Verdict
    """Verdict. undecided: the interval contains 1."""
    gone: tuple[str, ...] = ()
    """Findings of every run without it and of none with it."""
    new: tuple[str, ...] = ()
    """Findings of every run with it and of none without."""
    note: str = ""
    """Reason why it was not in effect, if it was not."""


class WhatIfReport(Struct, frozen=True, kw_only=True):
    """A program unchanged and with each remedy, in turn."""

    schema: str = SCHEMA
    version: str
    """Version of stepscope."""
    command: tuple[str, ...]
    measure: Measure
    step: str = ""
    """Description of a step: "Keras fit", "tf.function score" ..."""
    rounds: int
    ns: int
    """Time without a remedy: median over the rounds."""
    results: tuple[WhatIfResult, ...]
    runs: tuple[WhatIfRun, ...]
    """Runs in the order in which they were made."""
    folder: str
    """Folder of the sessions and the program's output."""
