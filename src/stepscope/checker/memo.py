"""Answers that are kept although questions go in circles: what a loop assigns depends on itself, calls on callers.

A question that is asked again while it is being answered gets the answer "nothing known". What was found out with that
help is only kept until the question that was open is answered: later answers do not depend on what was asked first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, cast

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_NEVER = 1 << 30


class Questions:
    """The questions that are open, of all kinds: they ask each other."""

    def __init__(self) -> None:
        self.depths: dict[tuple[int, Hashable], int] = {}
        """Open questions, with how deep they lie."""
        self.lowest = _NEVER
        """The outermost open question that the current answer made use of."""
        self.passing: dict[tuple[int, Hashable], tuple[object, int]] = {}
        """Answers that hold as long as questions are open, each with the depth of the outermost of these."""

    def close(self, depth: int) -> None:
        """Forget the answers that were found with the help of a question that is answered now."""
        if depth == 0:
            self.passing.clear()
        elif self.passing:
            self.passing = {k: v for k, v in self.passing.items() if v[1] < depth}


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
        depth = len(questions.depths)
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
            questions.close(depth)
        else:
            questions.passing[name] = (made, low)
        return made
