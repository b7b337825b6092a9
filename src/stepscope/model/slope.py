"""Which part of a place's time the steps of a job pay, in the report of an experiment."""

from __future__ import annotations

from stepscope.tables.structs import Struct


class WhatIfSlope(Struct, frozen=True, kw_only=True):
    """Which part of a place's time a step pays, by a small delay that was switched on and off in one process."""

    trial: str
    """As ``--try`` takes it."""
    slope: float = 0.0
    """Time that a step takes longer over the time that was added to it: 1 if nothing hides the place, 0 if all of it is
    hidden, above 1 if it holds others up."""
    low: float = 0.0
    high: float = 0.0
    """Upper end of the slope's interval at 95 %."""
    pairs: int = 0
    """Pairs of blocks, one with the delay and one without."""
    step_ns: int = 0
    """Mean time of a step without the delay."""
    place_ns: int = 0
    """Time of the place in a step without the delay, summed over its threads."""
    added_ns: int = 0
    """Time that was added to a step."""
    cost_ns: int = 0
    """What a step pays for the place: slope times ``place_ns``."""
    cost_low_ns: int = 0
    cost_high_ns: int = 0
    """The same by the ends of the slope's interval."""
    how: str = ""
    """How the calls were delayed: sleep | busy (computing without the interpreter lock) | busy-held (with it)."""
    buffered: int = 0
    """Steps that are buffered between the place and the step."""
    threads: int = 0
    """Threads, or forked processes, that call the place."""
    reason: str = ""
    """Why this place was tried."""
    why: str = ""
    """Reason why no slope is said; "" if one is."""
    session: str = ""
