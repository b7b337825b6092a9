"""What a process does at this moment: one word of its ring, for who looks from outside. Standard library only.

Records are written when a call ends; this says which long call is running. Only rare calls set it: once for a fit, an
evaluation, a trace, a save.
"""

from __future__ import annotations

import enum


class Doing(enum.IntEnum):
    """The innermost of these calls. Numbers are part of the ring's format."""

    NOTHING = 0
    """None of them, or the process is of a version that does not tell."""
    BUILDING = 1
    TRACING = 2
    TRAINING = 3
    """fit."""
    EVALUATING = 4
    PREDICTING = 5
    SAVING = 6


class CurrentActivity:
    """The word, set where a call begins and set back where it ends. Threads of one process may overwrite each other."""

    __slots__ = ("word",)

    def __init__(self) -> None:
        self.word = memoryview(bytearray(8)).cast("Q")
        """The word in the ring; in memory while there is none."""

    def begin(self, what: int) -> int:
        """Set it; returns what it was, for ``end``. Neither raises: both stand in the job's calls."""
        try:
            before = self.word[0]
            self.word[0] = what
        except (TypeError, ValueError):  # no number, or the ring was released at exit
            return 0
        return before

    def end(self, before: int) -> None:
        """Set it back."""
        try:
            self.word[0] = before
        except (TypeError, ValueError):  # as above
            return

    def leave(self) -> None:
        """Set a word in memory from now on: a forked child has no ring."""
        self.word = memoryview(bytearray(8)).cast("Q")
