"""Changes that are one: callers with what they call, and a cost that moved from one place to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.experiments import change_points

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stepscope.fleet.history import Followed
    from stepscope.use_cases.fleet.judging import Claim

NEAR = 20
"""One in so many sessions may lie between two changes that are taken to be of one moment."""
_UNCHANGED = 0.25
"""Most that a sum may change, as a share of what moved."""
_CALLING = frozenset({"line", "function"})
"""Series whose cost contains that of others."""


class Shown(Struct, kw_only=True):
    """A claim with those that are the same change."""

    claim: Claim
    also: list[Claim]
    to: Claim | None = None
    """Where its cost is now."""


def united(claims: Iterable[Claim]) -> list[Shown]:
    """The claims of one job: those with the largest relative change first, callers with them, moves as one."""
    found: list[Shown] = []
    for claim in sorted(claims, key=_by_ratio):
        head = next((one for one in found if _with(claim, one.claim)), None)
        if head is None:
            found.append(Shown(claim=claim, also=[]))
        else:
            head.also.append(claim)
    return _moved(found)


def _by_ratio(claim: Claim) -> tuple[float, float]:
    """What is new first; a caller changes by less than what it calls, since it does other things, too."""
    ratio = claim.effect.ratio
    return (0.0 if ratio is None else min(ratio, 1.0 / ratio), -abs(claim.more_ns))


def _with(claim: Claim, head: Claim) -> bool:
    """Whether it is the change of ``head`` seen at another place."""
    if claim.numbers.of not in _CALLING or head.numbers.of not in _CALLING:
        return False
    alike = abs(claim.more_ns - head.more_ns) <= claim.effect.reach + head.effect.reach
    return alike and (claim.more_ns > 0) == (head.more_ns > 0) and _at_once(claim, head)


def _at_once(one: Claim, other: Claim) -> bool:
    """Whether both changed at one moment, and both stand or both went away."""
    runs = len(one.numbers.runs)
    near = max(change_points.MIN_RUNS - 1, runs // NEAR)
    stands = (one.went_away is None) == (other.went_away is None)
    return stands and one.numbers is other.numbers and abs(one.main - other.main) <= near


def _moved(shown: Sequence[Shown]) -> list[Shown]:
    """With each rise that a fall makes up for as the place that the cost moved to."""
    falls = [one for one in shown if one.claim.more_ns < 0]
    taken: list[Shown] = []
    for rise in sorted((one for one in shown if one.claim.more_ns > 0), key=lambda one: -one.claim.more_ns):
        fits = [one for one in falls if one.to is None and _makes_up(one.claim, rise.claim)]
        if fits:
            fall = min(fits, key=lambda one: _apart(one.claim, rise.claim))
            fall.to = rise.claim
            fall.also += rise.also
            taken.append(rise)
    return [one for one in shown if one not in taken]


def _makes_up(fall: Claim, rise: Claim) -> bool:
    """Whether the sum of both is unchanged."""
    if fall.went_away is not None or not _at_once(fall, rise):
        return False
    both = fall.numbers.a_step[fall.at] + rise.numbers.a_step[rise.at]
    split = rise.main
    changed = change_points.change(both[:split], both[split:])
    left = abs(changed.after - changed.before)
    return left <= _UNCHANGED * min(rise.more_ns, -fall.more_ns) and left <= changed.reach


def _apart(fall: Claim, rise: Claim) -> tuple[bool, float]:
    """The same function first, whose lines may have other numbers now; then what fits best."""
    one, other = (claim.numbers.what[claim.at] for claim in (fall, rise))
    return (_function(one) != _function(other), abs(fall.more_ns + rise.more_ns))


def _function(one: Followed) -> tuple[str, str, str]:
    return (one.file, one.function, one.name)
