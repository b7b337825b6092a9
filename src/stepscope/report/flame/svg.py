"""A flame graph as one SVG file: no script, its own colours for light and dark, each box explained by its title.

Callers above, callees below; boxes narrower than a thousandth of the picture are omitted, and the picture says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from stepscope.derive.stacks.call_tree import stack_totals
from stepscope.derive.stacks.profile_difference import ALPHA
from stepscope.report.flame import words
from stepscope.report.flame.palette import css
from stepscope.report.marked import Attribute, Html, el, number, verbatim
from stepscope.tables.stacks import UNKNOWN, FrameKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stepscope.report.flame.graph import ComparedProfiles, Graph
    from stepscope.tables.records import F64
    from stepscope.tables.stacks import StackProfile

WIDTH = 1200.0
ROW = 17.0
_LEAST = 1.2
"""Minimum width of a drawn box, in units of the picture."""
_LETTER = 6.7
"""Width of a letter at the size of the picture's text."""
_FEWEST_LETTERS = 3
_HEAD = 62.0
_MAX_ROWS = 400


class _Picture(Struct, frozen=True, kw_only=True):
    """How each stack is drawn."""

    profile: StackProfile
    widths: F64
    """Width of each stack, in the profile's unit."""
    css: Callable[[int], str]
    title: Callable[[int], str]


def render(shown: Graph) -> Html:
    """One profile."""
    profile = shown.profile
    totals = stack_totals(profile, profile.samples.weight).total
    whole = totals[profile.stacks.parent == UNKNOWN].sum() or 1.0
    frames = profile.stacks.frame

    def title(stack: int) -> str:
        weight = words.weight_text(float(totals[stack]), profile.unit)
        return f"{_name(profile, stack)}: {words.percent(totals[stack] / whole)}, {weight}"

    picture = _Picture(
        profile=profile,
        widths=totals,
        css=lambda stack: FrameKind(profile.frames[frames[stack]].kind).name.lower(),
        title=title,
    )
    legend = [
        (kind.name.lower(), f"{words.KIND_WORDS[kind]} {words.percent(share)}")
        for kind, share in words.kind_items(profile)
    ]
    head = f"{words.event_text(profile)}: {words.samples_text(shown)} \u00b7 {shown.source}"
    return _svg(picture, head, "; ".join(words.health_items(shown)), legend)


def render_compared(compared: ComparedProfiles) -> Html:
    """A difference: widths show the second profile, colours show changes beyond noise."""
    found, profile = compared.difference, compared.after.profile
    one, other, unit = words.shown_bases(compared)
    per = words.per_text(compared)

    def title(stack: int) -> str:
        before = words.weight_text(float(found.before[stack]) / one, unit)
        after = words.weight_text(float(found.after[stack]) / other, unit)
        said = "beyond" if found.p_values[stack] < ALPHA else "within"
        return f"{_name(profile, stack)}: {before} \u2192 {after}{per}, {said} sampling noise"

    def colour(stack: int) -> str:
        if found.p_values[stack] >= ALPHA:
            return "noise"
        return "more" if found.after[stack] > found.before[stack] * found.factor else "less"

    picture = _Picture(profile=profile, widths=found.after, css=colour, title=title)
    legend = [(name, text) for name, text in words.CHANGE_WORDS.items()]
    head = f"{words.verdict(compared)} \u00b7 {compared.before.source} \u2192 {compared.after.source}"
    said = "; ".join(dict.fromkeys([*words.health_items(compared.before), *words.health_items(compared.after)]))
    return _svg(picture, head, said, legend)


def _name(profile: StackProfile, stack: int) -> str:
    frame = profile.frames[int(profile.stacks.frame[stack])]
    return f"{frame.function} ({frame.file}:{frame.line})" if frame.file and frame.line else frame.function


def _svg(picture: _Picture, head: str, health: str, legend: Sequence[tuple[str, str]]) -> Html:
    boxes, rows, left_out = _boxes(picture)
    height = _HEAD + (rows + 1) * ROW + 8
    parts = [
        verbatim("style", css()),
        el("rect", {"class": "page", "width": WIDTH, "height": height}),
        el("text", {"class": "head", "x": 6, "y": 16}, head),
    ]
    x = 6.0
    for name, text in legend:
        parts.append(el("rect", {"class": name, "x": x, "y": 25, "width": 11, "height": 11}))
        parts.append(el("text", {"x": x + 15, "y": 35}, text))
        x += 27 + _LETTER * len(text)
    small = f"; boxes below {words.percent(_LEAST / WIDTH)} are left out: {left_out:,}" if left_out else ""
    parts.append(el("text", {"class": "health", "x": 6, "y": 54}, health + small))
    attributes: dict[str, Attribute] = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {number(WIDTH)} {number(height)}",
        "width": WIDTH,
        "height": height,
        "role": "img",
        "aria-label": head,
        "font-family": "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace",
        "font-size": 11,
    }
    return el("svg", attributes, *parts, *boxes) + Html("\n")


def _boxes(picture: _Picture) -> tuple[list[Html], int, int]:
    """Markup of the boxes, number of rows, and number of boxes omitted as too narrow or too deep."""
    profile, widths = picture.profile, picture.widths
    parents = profile.stacks.parent
    children: dict[int, list[int]] = {}
    for stack in np.argsort(-widths, kind="stable").tolist():
        if widths[stack] > 0:
            children.setdefault(int(parents[stack]), []).append(stack)
    whole = float(sum(widths[stack] for stack in children.get(UNKNOWN, ()))) or 1.0
    scale = WIDTH / whole
    boxes = [_box("all", f"all: {words.weight_text(whole, profile.unit)}", "all", 0.0, 0, WIDTH, resolved=True)]
    deepest = 0
    left_out = 0
    waiting = [(UNKNOWN, 0.0, 0)]
    while waiting:
        above, x, depth = waiting.pop()
        for stack in children.get(above, ()):
            wide = float(widths[stack]) * scale
            if wide < _LEAST or depth >= _MAX_ROWS:
                left_out += 1
                continue
            frame = profile.frames[int(profile.stacks.frame[stack])]
            shown = _box(
                picture.css(stack), picture.title(stack), frame.function, x, depth + 1, wide, resolved=frame.resolved
            )
            boxes.append(shown)
            waiting.append((stack, x, depth + 1))
            deepest = max(deepest, depth + 1)
            x += wide
    return boxes, deepest, left_out


def _box(css: str, title: str, name: str, x: float, row: int, wide: float, *, resolved: bool) -> Html:
    y = _HEAD + row * ROW
    look = css if resolved else f"{css} nameless"
    shape: dict[str, Attribute] = {"class": look, "x": x, "y": y, "width": max(wide - 0.6, 0.4), "height": ROW - 1}
    letters = int((wide - 5) / _LETTER)
    label = Html()
    if letters >= _FEWEST_LETTERS:
        text = name if len(name) <= letters else f"{name[: letters - 1]}\u2026"
        label = el("text", {"x": x + 3, "y": y + 12}, text)
    return el("g", None, el("title", None, title), el("rect", shape), label)
