"""Kinds of code, weights, and the sentences that accompany every drawing of stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.derive.stacks.profile_difference import samples_known
from stepscope.report.flame.graph import kind_shares
from stepscope.tables.stacks import FrameKind
from stepscope.tables.units import format_bytes, format_ns, format_number_of

if TYPE_CHECKING:
    from stepscope.derive.stacks.drawn_tree import Cut
    from stepscope.derive.stacks.profile_difference import Change, Difference
    from stepscope.report.flame.graph import ComparedProfiles, Graph
    from stepscope.tables.stacks import StackProfile

KIND_WORDS = {
    FrameKind.PYTHON: "Python",
    FrameKind.LIBRARY: "Python libraries",
    FrameKind.INTERPRETER: "CPython itself",
    FrameKind.FRAMEWORK: "TensorFlow or other framework",
    FrameKind.MATH: "NumPy, oneDNN, Eigen, BLAS",
    FrameKind.ALLOCATOR: "allocator",
    FrameKind.KERNEL: "kernel",
    FrameKind.GENERATED: "generated code",
    FrameKind.NATIVE: "other native code",
    FrameKind.OTHER: "unknown",
}
"""Display names of the kinds of code, in the order of the legend."""
CHANGE_WORDS = {
    "more": "more, beyond sampling noise",
    "less": "less, beyond sampling noise",
    "noise": "within sampling noise",
}
"""Meaning of the colours of a difference."""
_THREE_DIGITS = 100
_LEAST_PERCENT, _WHOLE_PERCENT = 0.1, 10
_FASTER = 0.005
"""Smallest difference in host speed that is mentioned."""
_MUCH = 0.05
"""Smallest share of incomplete stacks at which the drawing carries a warning."""


def weight_text(weight: float, unit: str) -> str:
    """A weight with its unit; a plain number if the unit is unknown."""
    if unit == "ns":
        return format_ns(weight)
    if unit == "bytes":
        return format_bytes(weight)
    number = f"{weight:,.0f}" if weight == int(weight) or weight >= _THREE_DIGITS else f"{weight:,.3g}"
    return f"{number} {unit}".strip() if unit else number


def amount_text(weight: float, unit: str) -> str:
    """A weight next to others of the same unit: counts have no unit."""
    return weight_text(weight, unit if unit in {"ns", "bytes", "%"} else "")


def percent(ratio: float) -> str:
    """A share: "12 %", "0.4 %", "< 0.1 %"."""
    value = 100 * ratio
    if 0 < abs(value) < _LEAST_PERCENT:
        return f"< {_LEAST_PERCENT} %"
    return f"{value:.0f} %" if abs(value) >= _WHOLE_PERCENT or value == 0 else f"{value:.1f} %"


def event_text(profile: StackProfile) -> str:
    """The sampled event."""
    return profile.event or "samples"


def kind_items(profile: StackProfile) -> list[tuple[FrameKind, float]]:
    """Kinds of code with their share of the weight by innermost frame, including kinds only found further out."""
    shares = kind_shares(profile)
    used = {frame.kind for frame in profile.frames}
    used -= {FrameKind.OTHER} - set(shares)
    return [(kind, shares.get(kind, 0.0)) for kind in KIND_WORDS if kind in used]


def health_items(shown: Graph) -> list[str]:
    """How complete the stacks are; always stated, even if nothing is missing."""
    health = shown.health
    items = [f"{percent(health.unresolved_leaf_ratio)} end in an unnamed frame"]
    if health.truncated_ratio is None:
        items.append("the source does not say whether stacks are complete")
    elif health.truncated_ratio:
        items.append(f"{percent(health.truncated_ratio)} are truncated stacks, drawn under [truncated]")
    else:
        items.append("all stacks are complete")
    if health.attached_ratio:
        text = f"{percent(health.attached_ratio)} is generated code attached to its likely callers"
        open_ = f"; for {percent(health.without_op_ratio)} the op is unknown" if health.without_op_ratio else ""
        items.append(text + open_)
    if health.approximate_ratio:
        items.append(f"{percent(health.approximate_ratio)} take Python frames or callers from a nearby sample")
    if health.unnamed_python_ratio:
        items.append(f"{percent(health.unnamed_python_ratio)} run Python whose functions were not sampled")
    if shown.idle:
        whole = shown.idle + shown.profile.total
        items.append(f"idle tasks are omitted: {percent(shown.idle / whole)} of all samples")
    if shown.profile.lost:
        items.append(f"{shown.profile.lost:,} samples were lost")
    if shown.profile.unread:
        items.append(f"{shown.profile.unread:,} parts of the file are not stacks")
    return items


def is_doubtful(shown: Graph) -> bool:
    """Whether so many stacks are incomplete or unnamed that the drawing needs a warning."""
    health = shown.health
    return max(health.unresolved_leaf_ratio, health.truncated_ratio or 0.0) >= _MUCH


def samples_text(shown: Graph) -> str:
    """The size of a profile: samples and weight."""
    profile = shown.profile
    weight = weight_text(profile.total, profile.unit)
    if not samples_known(profile):
        return f"{weight} in {format_number_of(f'{len(profile.samples):,}', 'rows')}"
    count = format_number_of(f"{shown.samples:,.0f}", "samples")
    return count if profile.unit in {"samples", ""} and shown.samples == profile.total else f"{count}, {weight}"


def merged_text(merged: Cut, unit: str) -> str:
    """What was too small to draw."""
    below, share = weight_text(merged.below, unit), percent(merged.weight_ratio)
    return f"{merged.stacks:,} stacks below {below} are merged into [too small to draw]: {share} of the whole."


def shown_bases(compared: ComparedProfiles) -> tuple[float, float, str]:
    """What weights of the two profiles are divided by to be shown, and the unit that they then have."""
    before, after = compared.difference.bases
    if compared.difference.basis == "share":
        return before / 100, after / 100, "%"
    return before, after, compared.after.profile.unit


def per_text(compared: ComparedProfiles) -> str:
    """What weights are shown per: " per step"; "" if they are those of all that was sampled."""
    return f" per {compared.unit_of_work}" if compared.unit_of_work else ""


def change_text(change: Change, compared: ComparedProfiles) -> str:
    """Before, after, and how much: "15.3 -> 72.7 page-faults per step (+375 %)"."""
    one, other, unit = shown_bases(compared)
    before, after = change.before / one, change.after / other
    per = per_text(compared)
    return f"{amount_text(before, unit)} \u2192 {weight_text(after, unit)}{per} ({growth_text(before, after)})"


def growth_text(before: float, after: float) -> str:
    """How much the second of two figures is more than the first."""
    if not before:
        return "new" if after else ""
    return f"{100 * (after / before - 1):+,.0f} %" if after else "gone"


def verdict(compared: ComparedProfiles) -> str:
    """The difference in one sentence."""
    found = compared.difference
    event = event_text(compared.after.profile)
    if not found.significant:
        return f"No significant change in {event}"
    if found.functions:
        first = found.functions[0]
        more = len(found.functions) - 1
        rest = f", and {more} more" if more else ""
        growth = _growth(first.own if first.own.significant else first.total, compared)
        return f"{event}: {first.function.function} {growth} beyond sampling noise{rest}"
    return f"{event}: {_growth(found.whole, compared)} in total, beyond noise, but not concentrated in any function"


def _growth(change: Change, compared: ComparedProfiles) -> str:
    one, other, _ = shown_bases(compared)
    return growth_text(change.before / one, change.after / other)


def basis_text(compared: ComparedProfiles) -> str:
    """Basis of a comparison: of which work the weights are, and what all functions share."""
    found = compared.difference
    if found.basis == "share":
        return "Shares are compared, so what one function loses, others gain."
    text = "Both are assumed to cover the same work"
    if compared.unit_of_work:
        of = ", of {:,.6g} and {:,.6g} units"
        of = ": the samples stand for {:,.0f} and {:,.0f} steps" if compared.unit_of_work == "step" else of
        text = f"Weights are{per_text(compared)}{of.format(*found.bases)}"
    elif compared.before.of_run and compared.after.of_run:
        text = "Whole runs are compared, start and end included, whatever number of steps they made"
    return f"{text}{_shared(found)}."


def _shared(found: Difference) -> str:
    """What most functions have in common, which makes none of them differ."""
    if not found.timed or abs(found.speed - 1) < _FASTER:
        return ""
    how = "slower" if found.speed > 1 else "faster"
    much = percent(abs(found.speed - 1))
    least, part = ("at least ", f"{much} are") if found.host_at_limit else ("", "this is")
    alike = f"most functions of the second are {least}{much} {how}"
    return f"; {alike}: {part} put down to the host, and a function is named if it differs from that"


def difference_items(compared: ComparedProfiles) -> list[str]:
    """Sentences about a difference: the total, the functions, and the basis."""
    found = compared.difference
    items = []
    if found.basis == "work":
        noise = "beyond" if found.whole.significant else "within"
        items.append(f"Total {change_text(found.whole, compared)}, {noise} noise.")
    before, after = found.samples
    known = samples_known(compared.before.profile) and samples_known(compared.after.profile)
    of = f"{before:,.0f} and {after:,.0f} samples" if known else "each row of the files counts as one sample at most"
    items.append(
        f"{len(found.functions)} of {found.tested} functions with enough samples differ beyond sampling noise ({of})."
    )
    if not found.functions:
        least = f", unless it takes {percent(found.least_gone)} of the first" if found.least_gone <= 1 else ""
        items.append(f"These samples do not show that a function has gone{least}.")
    items.append(basis_text(compared))
    if compared.scripts[0]:
        items.append("Functions of {} are compared with those of {}.".format(*compared.scripts))
    return items
