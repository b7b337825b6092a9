"""Stacks for a terminal: the sampled event, how complete the stacks are, and the heaviest functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report.flame import words
from stepscope.report.flame.graph import top_functions
from stepscope.report.words import printable

if TYPE_CHECKING:
    from stepscope.report.flame.graph import ComparedProfiles, Graph
    from stepscope.tables.stacks import Frame

MOST = 20
_NAME = 72
"""Maximum characters of a function's name and place."""


def render(shown: Graph) -> str:
    """One profile."""
    profile = shown.profile
    total = profile.total or 1.0
    lines = [f"{words.event_text(profile)}   {words.samples_text(shown)}   {printable(shown.source)}"]
    if shown.window:
        lines.append(f"window    {shown.window}")
    lines.append(f"stacks    {'; '.join(words.health_items(shown))}")
    kinds = [f"{words.KIND_WORDS[kind]} {words.percent(share)}" for kind, share in words.kind_items(profile) if share]
    lines += [f"kinds     {', '.join(kinds)}", "", "   self   total  function"]
    for row in top_functions(profile, MOST):
        shares = f"{words.percent(row.self_weight / total):>7} {words.percent(row.total / total):>7}"
        lines.append(f"{shares}  {_name(row.function)}")
    lines += [f"note      {printable(one.text)}" for one in profile.diagnostics]
    return "\n".join(lines) + "\n"


def hottest(shown: Graph, most: int) -> str:
    """The functions with the largest own share, one a line, below the event."""
    profile = shown.profile
    total = profile.total or 1.0
    rows = [row for row in top_functions(profile, most) if row.self_weight > 0]
    lines = [f"{words.percent(row.self_weight / total):>7}  {_name(row.function)}" for row in rows]
    return "".join(f"{'hot' if not i else '':<9} {line}\n" for i, line in enumerate(lines))


def render_compared(compared: ComparedProfiles) -> str:
    """A difference."""
    found = compared.difference
    lines = [words.verdict(compared), *(f"  {item}" for item in words.difference_items(compared))]
    for name, one in (("before", compared.before), ("after", compared.after)):
        lines.append(
            f"{name:<8}{printable(one.source)}: {words.samples_text(one)}; {'; '.join(words.health_items(one))}"
        )
    if found.functions:
        lines += ["", "beyond sampling noise:"]
    for change in found.functions[:MOST]:
        own, total = change.own, change.total
        said = f"self {words.change_text(own, compared)}" if own.significant else ""
        if total.significant and (total.before, total.after) != (own.before, own.after):
            said += f"{', ' if said else ''}total {words.change_text(total, compared)}"
        lines.append(f"  {_name(change.function)}  {said}")
    if len(found.functions) > MOST:
        lines.append(f"  and {len(found.functions) - MOST} more")
    notes = dict.fromkeys(one.text for shown in (compared.before, compared.after) for one in shown.profile.diagnostics)
    lines += [f"note    {printable(text)}" for text in notes]
    return "\n".join(lines) + "\n"


def _name(function: Frame) -> str:
    place = function.file.rpartition("/")[2] or (
        "" if function.function.startswith("[") else function.module.rpartition("/")[2]
    )
    text = printable(f"{function.function} ({place})" if place else function.function)
    return text if len(text) <= _NAME else f"{text[: _NAME - 1]}\u2026"
