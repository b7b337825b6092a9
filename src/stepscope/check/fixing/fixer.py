"""From plans to edits of one text, and from edits to a new text that is verified.

A fix is applied only if the resulting text parses, keeps every comment, and differs. If a fix is impossible, the reason
is returned; the content of a file or a plan never raises.
"""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from stepscope.check.fixing.actions import ACTIONS
from stepscope.check.fixing.edits import CannotFixError, Edit, apply
from stepscope.check.fixing.naming import Naming
from stepscope.check.fixing.tree import Tree
from stepscope.check.fixing.work import PlannedFile
from stepscope.check.hits import FixPlan


class PlannedFix(Struct, frozen=True):
    """Result of a plan: edits, or the reason why there are none."""

    edits: tuple[Edit, ...] = ()
    refused: str = ""


class Fixer:
    """Fixes for one text, which is parsed on the first plan.

    Args:
        text: the file's text, as rules saw it.
        version: the TensorFlow version to check for.
    """

    def __init__(self, text: str, version: tuple[int, int]) -> None:
        self.text = text
        self.version = version
        self._parsed: tuple[Tree, Naming] | CannotFixError | None = None
        self._comments: Counter[str] | None = None

    def plan(self, plan: FixPlan) -> PlannedFix:
        """The edits of a plan, verified separately: the text they produce is sound."""
        try:
            edits = self._edits(plan)
            self._hold(edits)
        except CannotFixError as error:
            return PlannedFix(refused=str(error))
        return PlannedFix(edits)

    def _hold(self, edits: tuple[Edit, ...]) -> None:
        if not edits:
            raise CannotFixError("nothing changes")
        if any(a is not b and a.touches(b) for a in edits for b in edits):
            raise CannotFixError("its parts overlap")
        if self._comments is None:
            self._comments = comments(self.text)
        sound(apply(self.text, edits), self._comments)

    def _edits(self, plan: FixPlan) -> tuple[Edit, ...]:
        tree, naming = self._parse()
        found: list[Edit] = []
        for part in (plan, *plan.parts):
            action = ACTIONS.get(part.action)
            if action is None:
                raise CannotFixError(f"no action is called {part.action}")
            work = PlannedFile(part, tree, naming)
            found += [*action(work), *work.imports]
        return tuple(sorted(set(found)))

    def _parse(self) -> tuple[Tree, Naming]:
        if self._parsed is None:
            try:
                self._parsed = Tree(self.text), Naming(self.text, self.version)
            except CannotFixError as error:
                self._parsed = error
        if isinstance(self._parsed, CannotFixError):
            raise self._parsed
        return self._parsed


def compatible(chosen: Sequence[Edit], more: Sequence[Edit]) -> bool:
    """Whether edits can be combined with others; if both add the same import, it is added once."""
    return not any(a.touches(b) for a in chosen for b in more)


def sound(text: str, kept: Counter[str]) -> None:
    """Check that the text after a fix parses and keeps its comments.

    Raises:
        CannotFixError: it does not parse, or one of the comments ``kept`` is lost.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise CannotFixError("the result would not parse") from error
    if kept - comments(text):
        raise CannotFixError("a comment would be lost")


def comments(text: str) -> Counter[str]:
    """The comments of a text, with the number of occurrences of each."""
    tokens = tokenize.generate_tokens(io.StringIO(text, newline="").readline)
    try:
        return Counter(token.string.rstrip() for token in tokens if token.type == tokenize.COMMENT)
    except (tokenize.TokenError, SyntaxError) as error:
        raise CannotFixError(f"it cannot be tokenized ({type(error).__name__})") from error
