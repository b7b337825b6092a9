"""Cached answers to circular questions: a value assigned in a loop depends on itself, calls depend on callers.

A question that is asked again while it is being answered gets the answer "nothing known". An answer that used such a
result is only cached until the open question is answered, so that answers do not depend on the order of questions.
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
"""Number of questions between two looks at the clock."""


class OutOfTimeError(Exception):
    """Raised if the questions about a file take longer than they are worth."""


class Questions:
    """The open questions of all kinds, because they ask each other."""

    def __init__(self) -> None:
        self.depths: dict[tuple[int, Hashable], int] = {}
        """Open questions, with their depth."""
        self.lowest = _NEVER
        """Depth of the outermost open question that the current answer used."""
        self.passing: dict[tuple[int, Hashable], tuple[object, int]] = {}
        """Temporary answers, each with the depth of the outermost open question that it used."""
        self.order: list[tuple[int, Hashable]] = []
        """Keys of ``passing``, in order of arrival."""
        self.until = math.inf
        """CPU time at which answering stops."""
        self.asked = 0

    def count(self) -> None:
        """Count one question; at intervals, stop if the time is over.

        Raises:
            OutOfTimeError: the time is over.
        """
        self.asked += 1
        if not self.asked & _LOOKS and time.process_time() > self.until:
            raise OutOfTimeError

    def forget(self) -> None:
        """Reset after an error: close all questions and drop all answers that depended on them."""
        self.close(0)
        self.lowest = _NEVER

    def close(self, start: int) -> None:
        """Drop the answers found while a question was open that is now answered: all of them used it."""
        for name in self.order[start:]:
            del self.passing[name]
        del self.order[start:]


class Memo(Generic[K, V]):
    """Cached answers to one kind of question.

    Args:
        questions: shared by all kinds that ask each other.
        unknown: the answer to a question that is open.
        answer: computes the answer.
    """

    def __init__(self, questions: Questions, unknown: V, answer: Callable[..., V]) -> None:
        self.questions = questions
        self.unknown = unknown
        self.answer = answer
        self.kept: dict[K, V] = {}
        self.kind = id(self)

    def get(self, key: K, *arguments: object) -> V:
        """The answer to a question; ``arguments`` are the input needed to compute it."""
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
