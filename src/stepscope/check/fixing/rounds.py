"""Fixing in rounds: apply all fixes that do not conflict, check again, repeat until nothing is left to fix.

A fix after which its rule still reports the place is reverted: it is not a fix.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from stepscope.check.fixing.edits import CannotFixError, Edit, apply
from stepscope.check.fixing.files import Content, PythonContent
from stepscope.check.fixing.fixer import Fixer, comments, compatible, sound
from stepscope.check.fixing.notebooks import NotebookContent
from stepscope.check.hits import FixPlan, FixSafety, Hit

MAX_ROUNDS = 50
"""Limit of rounds. Conflicting fixes wait for the next round, as do those of a rule with a fix that had no effect;
files need two or three rounds, and more than this limit means that two rules undo each other."""
Hits = Mapping[str, Sequence[Hit]]
"""Hits by path."""
Contents = Mapping[str, bytes]
"""Contents by path."""
Check = Callable[[Contents], Hits]
"""Function that checks files with other content than on disk; files that can no longer be checked are missing in the
answer."""


class AppliedFix(Struct, frozen=True, kw_only=True):
    """A fix that was applied, or the reason why it was not."""

    hit: Hit
    """Hit as found in the round of the fix, with lines of the text at that time."""
    line: str
    """Its line as people find it: ``12``, in a notebook ``cell 3:4``."""
    plan: FixPlan
    refused: str = ""
    """Reason for refusing the fix; "" if it was applied."""


class Outcome(Struct):
    """Result of fixing."""

    contents: dict[str, bytes] = field(default_factory=dict)
    """New content of the changed files."""
    done: list[AppliedFix] = field(default_factory=list)
    refused: list[AppliedFix] = field(default_factory=list)
    """Requested fixes that were not applied in the last round."""
    hits: dict[str, Sequence[Hit]] = field(default_factory=dict)
    """Hits found afterwards."""


class _Round(Struct):
    """One file in one round."""

    content: Content
    edits: list[Edit] = field(default_factory=list)
    done: list[AppliedFix] = field(default_factory=list)
    refused: list[AppliedFix] = field(default_factory=list)

    def refuse(self, hit: Hit, plan: FixPlan, why: str) -> None:
        """Record a fix that was not applied."""
        self.refused.append(AppliedFix(hit=hit, line=self.content.place(hit.span.line), plan=plan, refused=why))


def content_of(path: str, data: bytes) -> Content:
    """The content of a file by its type.

    Raises:
        CannotFixError: it cannot be edited.
    """
    return NotebookContent(data) if path.endswith(".ipynb") else PythonContent(data)


def fix(
    hits: Hits,
    read: Callable[[str], bytes],
    check: Check,
    *,
    version: tuple[int, int],
    allowed: Iterable[FixSafety] = ("safe",),
) -> Outcome:
    """Apply the fixes of hits, as long as there are new ones.

    Args:
        hits: all results of a first check.
        read: a file's content on disk.
        check: checks again, see ``Check``.
        version: the TensorFlow version to check for.
        allowed: the safeties of fixes to apply.
    """
    outcome = Outcome(hits=dict(hits))
    wanted = frozenset(allowed)
    state = _State()
    for _ in range(MAX_ROUNDS):
        rounds = {
            path: _one(path, outcome.contents.get(path) or read(path), found, version, wanted, state)
            for path, found in outcome.hits.items()
            if any(h.fix is not None and h.fix.safety in wanted for h in found)
        }
        outcome.refused = [fixed for one in rounds.values() for fixed in one.refused]
        changed = {path: one for path, one in rounds.items() if one.edits}
        if not changed:
            break
        made = {path: one.content.edited(one.edits) for path, one in changed.items()}
        after = check({**outcome.contents, **made})
        kept = {}
        for path, one in changed.items():
            if _without_effect(path, outcome.hits[path], after.get(path), one, state):
                kept[path] = outcome.hits[path]
                continue
            outcome.contents[path] = made[path]
            outcome.done += one.done
        outcome.hits = {**outcome.hits, **after, **kept}
    return outcome


class _State(Struct):
    """Results of earlier rounds."""

    useless: set[tuple[str, str, str]] = field(default_factory=set)
    """Fixes after which their rule still reported the place: path, code, message."""
    singly: set[tuple[str, str]] = field(default_factory=set)
    """Path and code of fixes that are applied one per round, because one of several had no effect."""


def _one(
    path: str, data: bytes, hits: Sequence[Hit], version: tuple[int, int], allowed: frozenset[str], state: _State
) -> _Round:
    """The fixes of one file that can be applied together."""
    wanted = [(hit, hit.fix) for hit in hits if hit.fix is not None and hit.fix.safety in allowed]
    try:
        one = _Round(content_of(path, data))
    except CannotFixError as error:
        one = _Round(PythonContent(b""))
        one.refused = [
            AppliedFix(hit=hit, line=str(hit.span.line), plan=plan, refused=str(error)) for hit, plan in wanted
        ]
        return one
    fixer = Fixer(one.content.text, version)
    kept = None
    for hit, plan in wanted:
        if (path, hit.code) in state.singly and any(f.hit.code == hit.code for f in one.done):
            continue
        if (path, hit.code, hit.message) in state.useless:
            one.refuse(hit, plan, "the rule still reports the place after the fix")
            continue
        planned = fixer.plan(plan)
        if planned.refused:
            one.refuse(hit, plan, planned.refused)
            continue
        try:
            one.content.edited(planned.edits)
            if not compatible(one.edits, planned.edits):
                continue
            together = [*one.edits, *planned.edits]
            if one.edits:
                kept = comments(one.content.text) if kept is None else kept
                sound(apply(one.content.text, together), kept)
        except CannotFixError as error:
            one.refuse(hit, plan, str(error))
            continue
        one.edits = together
        one.done.append(AppliedFix(hit=hit, line=one.content.place(hit.span.line), plan=plan))
    return one


def _without_effect(path: str, before: Sequence[Hit], after: Sequence[Hit] | None, one: _Round, state: _State) -> bool:
    """Whether some fixes did not reduce the hits of their code: the next round omits them, or applies one at a time."""
    tried = Counter(fixed.hit.code for fixed in one.done)
    counts, left = Counter(h.code for h in before), Counter(h.code for h in (before if after is None else after))
    failed = {code for code, count in tried.items() if left[code] > counts[code] - count}
    for fixed in one.done:
        code = fixed.hit.code
        if code in failed and tried[code] == 1:
            state.useless.add((path, code, fixed.hit.message))
        elif code in failed:
            state.singly.add((path, code))
    return bool(failed)
