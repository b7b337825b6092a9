"""The job's links between hosts, and the clocks of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import words
from stepscope.report.blocks import Listed, Table, columns
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where
from stepscope.tables.units import format_bytes, format_ns, format_rate, format_ratio

if TYPE_CHECKING:
    from stepscope.model.report.machine.clocks import HostClockOffset
    from stepscope.model.report.machine.links import NetworkLink
    from stepscope.model.report.report import Report

SHOWN = 12
"""Rows in Markdown and on the page; report.json has all."""
SHORT = 3
HEAD = columns("From | To | Sent: | Received: | Busy: | Shortest round trip: | Lost: | Delivery rate: | Held by")


def short(links: tuple[NetworkLink, ...]) -> list[str]:
    """Lines for the terminal: links that the network holds; if there are none, one line about those between hosts."""
    held = [link for link in links if link.reason != "none"]
    if held:
        return [f"{_name(link)}: {words.printable(link.text)}" for link in held[:SHORT]]
    between = [link for link in links if not link.within_host]
    if not between:
        return []
    busiest = max(between, key=lambda link: link.busy_ratio)
    return [f"{words.plural(len(between), 'link')} to other hosts; {_name(busiest)}: {words.printable(busiest.text)}"]


def clocks(report: Report) -> list[str]:
    """Lines for the terminal about clocks of other hosts."""
    return [_clock(clock) for clock in report.clocks[:SHORT]]


def _clock(clock: HostClockOffset) -> str:
    """The wall clock, because the zero of the other one means nothing to a reader."""
    ahead = clock.wall_offset_ns
    word = "ahead" if ahead >= 0 else "behind"
    within = f"{format_ns(clock.bound_ns)} (shortest round trip {format_ns(clock.round_trip_ns)})"
    name = words.printable(clock.host)
    if abs(ahead) <= clock.bound_ns:
        return f"{name}: as here, to within {within}"
    drift = f", drift {1e6 * clock.drift_ratio:+.1f} us a second" if clock.drift_ratio else ""
    return f"{name}: {format_ns(abs(ahead))} {word}, to within {within}{drift}"


def _name(link: NetworkLink) -> str:
    return f"to {words.printable(link.there)}"


def rows(links: tuple[NetworkLink, ...]) -> list[tuple[str, ...]]:
    """One for each link; columns as ``HEAD``."""
    return [
        (
            words.printable(link.here),
            words.printable(link.there),
            format_bytes(link.sent_bytes),
            format_bytes(link.received_bytes),
            format_ratio(link.busy_ratio),
            format_ns(link.min_rtt_ns) if link.min_rtt_ns >= 0 else "",
            format_ratio(link.lost_ratio),
            f"{format_rate(8e-6 * link.delivery_bytes_s)} Mbit/s" if link.delivery_bytes_s else "",
            words.printable(link.text),
        )
        for link in links[:SHOWN]
    ]


def _lines(asked: Asked) -> Said:
    yield Lines(label="links", texts=short(asked.report.links), where=Where.END, always=True)
    yield Lines(label="clocks", texts=clocks(asked.report), where=Where.END, always=True)


def _blocks(asked: Asked) -> Blocks:
    if asked.report.links:
        yield Table(HEAD, rows(asked.report.links))
    if said := clocks(asked.report):
        yield Listed([f"Clock of {text}" for text in said])


SECTION = Section(key="links", title="Links", lines=_lines, blocks=_blocks)
