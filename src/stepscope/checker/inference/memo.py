"""Answers that are kept although questions go in circles: what a loop assigns depends on itself, calls on callers.

A question that is asked again while it is being answered gets the answer "nothing known". What was found out with that
help is only kept until the question that was open is answered: later answers do not depend on what was asked first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, cast

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_NEVER = 1 << 30
_LOOKS = 0xFF
"""The clock is looked at once in so many questions."""


class OutOfTimeError(Exception):
    """The questions about a file take longer than it is worth."""


class Questions:
    """The questions that are open, of all kinds: they ask each other."""

    def __init__(self) -> None:
        self.depths: dict[tuple[int, Hashable], int] = {}
        """Open questions, with how deep they lie."""
        self.lowest = _NEVER
        """The outermost open question that the current answer made use of."""
        self.passing: dict[tuple[int, Hashable], tuple[object, int]] = {}
        """Answers that hold as long as questions are open, each with the depth of the outermost of these."""
        self.order: list[tuple[int, Hashable]] = []
        """The same, as they came."""
        self.until = math.inf
        """CPU time at which no more questions are answered."""
        self.asked = 0

    def count(self) -> None:
        """One more was asked; now and then, stop where the time is over.

        Raises:
            OutOfTimeError: it is.
        """
        self.asked += 1
        if not self.asked & _LOOKS and time.process_time() > self.until:
            raise OutOfTimeError

    def forget(self) -> None:
        """After an error: nothing is open any more, and nothing holds that was found while something was."""
        self.close(0)
        self.lowest = _NEVER

    def close(self, start: int) -> None:
        """Forget what was found while a question was open that is answered now: all of it made use of that one."""
        for name in self.order[start:]:
            del self.passing[name]
        del self.order[start:]


class Memo(Generic[K, V]):
    """Answers of one kind.

    Args:
        questions: shared by all kinds that ask each other.
        unknown: the answer to a question that is open.
        answer: finds it out.
    """

    def __init__(self, questions: Questions, unknown: V, answer: Callable[..., V]) -> None:
        self.questions = questions
        self.unknown = unknown
        self.answer = answer
        self.kept: dict[K, V] = {}
        self.kind = id(self)

    def get(self, key: K, *arguments: object) -> V:
        """The answer to a question; ``arguments`` are what it takes to find out."""
        found = self.kept.get(key)
        if found is not None:
            return found
        questions, name = self.questions, (self.kind, key)
        if name in questions.depths:
            questions.lowest = min(questions.lowest, questions.depths[name])
            return self.unknown
        if name in questions.passing:
            passing, low = questions.passing[name]
            questions.lowest = min(questions.lowest, low)
            return cast("V", passing)
        questions.count()
        depth, start = len(questions.depths), len(questions.order)
        before, questions.lowest = questions.lowest, _NEVER
        questions.depths[name] = depth
        try:
            made = self.answer(*arguments)
        finally:
            del questions.depths[name]
            low, questions.lowest = questions.lowest, min(before, questions.lowest)
        if low >= depth:
            self.kept[key] = made
            questions.lowest = before
            if len(questions.order) > start:
                questions.close(start)
        else:
            questions.passing[name] = (made, low)
            questions.order.append(name)
        return made
