"""What the timeline of a job on several hosts has to show, and the pictures of it that are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PIL import Image

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.model.api.timeline import Timeline

NETWORK = "network between tasks"
LOST = ": lost"
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
    if job == "ps":
        found.append(("traced transfers", any("ps" in title and n for title, n in sent.items()), _counts(sent)))
    return found


def _counts(found: dict[str, int]) -> str:
    return "; ".join(f"{title.removesuffix(LOST)}: {count}" for title, count in found.items())


def keep_pictures(shots: Path, target: Path) -> None:
    """The upper parts of pictures, with few colours."""
    for name, _ in SHOWN:
        picture = Image.open(shots / f"{name}.png").convert("RGB").crop((0, 0, WIDTH, HEIGHT))
        few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        few.save(target / f"story-{name}.png", optimize=True)
