"""Why a capture is made. Sessions, statuses and the agent keep the word of a reason."""

from __future__ import annotations

from msgspec import Struct


class Reason(Struct, frozen=True, kw_only=True):
    """Who asks for a capture."""

    word: str
    """Stored name; the code of a detector is its own."""
    person: bool = False
    """A person asks, now or by a schedule: the number of steps is theirs."""
    detector: bool = False
    """A detector is undecided without it."""
    spare: bool = False
    """It is made only if no capture of its kind was asked for."""


USER = Reason(word="user", person=True)
SCHEDULE = Reason(word="schedule", person=True)
COMPUTE = Reason(word="compute", spare=True)
"""Steps spend their time in ops: which ones is the question that is left."""
FIRST = Reason(word="first-look")
"""The job looks at its first steady steps by itself; also the repetition of a look at the wrong steps."""
STACKS = Reason(word="stacks", spare=True)
"""The run is made to compare its stacks with those of another one."""
_KNOWN = {reason.word: reason for reason in (USER, SCHEDULE, COMPUTE, FIRST, STACKS)}


def of(word: str) -> Reason:
    """The reason of a stored word; any other word is the code of a detector."""
    return _KNOWN.get(word) or Reason(word=word, detector=True)
