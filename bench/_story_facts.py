"""What the timeline of a job on several hosts has to show, and the pictures of it that are kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from PIL import Image

from stepscope.timeline import joint_steps

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from stepscope.model.api.timeline import Timeline

NETWORK = "network between tasks"
LOST = ": lost"
SAME = {
    "ps": re.compile(r"the same time of worker \d, worker \d"),
    "mirrored": re.compile(r"the same \d+ steps of worker \d, worker \d"),
}
"""What is said of a capture of all tasks."""
JOINT = {
    "ps": re.compile(r"op traces of the same time of worker 0, worker 1; no step is the same"),
    "mirrored": re.compile(r"joint op trace of the same \d+ steps of worker 0, worker 1, [\d,]+ to [\d,]+ of the job"),
}
"""The same in the report of all tasks."""
MISSING = ("missed: ", "not in it", " alone", "failed")
WIDTH, HEIGHT, COLOURS = 1440, 1200, 32
SHOWN = (
    ("ps-timeline", "the timeline of the job with a parameter server, all hosts on one axis"),
    ("mirrored-trace", "traced steps of worker 0, and what went over the links meanwhile"),
)
"""Pictures that are kept: names, and what they show."""


def facts(told: Timeline, job: str) -> list[tuple[str, bool, str]]:
    """Each with whether it holds, and what was seen."""
    groups = sorted({track.group for track in told.tracks})
    bounds = sorted({track.bound_ns for track in told.tracks if track.bound_ns})
    unknown = [track.group for track in told.tracks if track.bound_ns is None]
    links = [one.title for one in told.series if one.group == NETWORK]
    lanes = [track for track in told.tracks if track.group == NETWORK]
    lost = {track.title: track.spans for track in lanes if track.title.endswith(LOST)}
    sent = {track.title: track.spans for track in lanes if not track.title.endswith(LOST)}
    members = ("ps 0", "worker 0", "worker 1") if job == "ps" else ("worker 0", "worker 1")
    there = all(any(group.startswith(member) for group in groups) for member in members)
    traces = {one.trace for one in told.traces}
    found = [
        ("lanes of every task on one axis", there, f"{len(groups)} groups"),
        ("every clock has a bound", bool(bounds) and not unknown, ", ".join(f"{b / 1e6:.2f} ms" for b in bounds)),
        ("a curve for each link", len(links) > 1, "; ".join(links)),
        ("what was sent again on them", bool(lost), _counts(lost)),
        ("traces of tasks on both hosts, told apart", len(traces) > 1, f"{len(traces)}"),
    ]
    same = [track for track in told.tracks if track.group == joint_steps.GROUP]
    if job == "mirrored":
        found.append(
            ("the steps that are the same on a lane", bool(same), _counts({one.title: one.spans for one in same}))
        )
    if job == "ps":
        found.append(("traced transfers", any("ps" in title and n for title, n in sent.items()), _counts(sent)))
    return found


def of_request(texts: Iterable[str]) -> str:
    """What the page says of a capture that a person asked for, among what it says of others; "": nothing yet."""
    words = ("the same ", *MISSING)
    return next((text for text in texts if any(word in text for word in words)), "")


def together(said: str, job: str) -> tuple[str, bool]:
    """What a capture has in common, and whether it is of all tasks."""
    same = SAME[job].search(said)
    whole = same is not None and not any(word in said for word in MISSING)
    return same[0] if same is not None else "not of both", whole


def joint(report: str, job: str) -> tuple[str, bool]:
    """What a report says of captures of all tasks, of which there are two."""
    same = [found[0] for found in JOINT[job].finditer(report)]
    return "; ".join(same), len(same) > 1


def _counts(found: dict[str, int]) -> str:
    return "; ".join(f"{title.removesuffix(LOST)}: {count}" for title, count in found.items())


def keep_pictures(shots: Path, target: Path) -> None:
    """The upper parts of pictures, with few colours."""
    for name, _ in SHOWN:
        picture = Image.open(shots / f"{name}.png").convert("RGB").crop((0, 0, WIDTH, HEIGHT))
        few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        few.save(target / f"story-{name}.png", optimize=True)
