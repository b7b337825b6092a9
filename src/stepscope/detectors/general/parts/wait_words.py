"""Words of the general detector of waits: for what the thread waits, and the remedies that follow from it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.tables.findings import Remedy
from stepscope.tables.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.causes.general.wait_partners import Partner
    from stepscope.causes.general.waits import Rates, WaitOn

COUNTED = frozenset({"file", "pipe"})
"""Reasons whose calls the kernel counts by thread."""
_SYNCS = frozenset({"fsync", "fdatasync", "sync", "syncfs", "msync", "sync_file_range"})
_READS = frozenset({"read", "pread64", "readv", "preadv", "recvfrom", "recvmsg"})
_PART_NEEDED = "; part of this wait may be needed"
_DOES = {
    "sleep": "sleeps",
    "file": "waits for a file",
    "socket": "waits for a socket",
    "pipe": "waits for a pipe",
    "process": "waits for another process",
}
"""What another thread does, by the reason for which it does not run."""


class What(Struct, frozen=True, kw_only=True):
    """A wait in words: "Recorder.add WAITS 12 ms a step FOR FRAMES.BIN"."""

    verb: str = "waits"
    rest: str
    """What follows after the time."""
    remedies: tuple[Remedy, ...]
    needed: str = _PART_NEEDED
    """Whether part of it may be needed; "" if not."""


def who(wait: WaitOn) -> str:
    """The function that waits, or the line of a script."""
    return wait.spot.function if wait.spot.function not in {"", "<module>"} else f"line {wait.spot.line}"


def call(wait: WaitOn) -> str:
    """The system call and what it is about."""
    return f"{wait.call} ({wait.target})" if wait.target else wait.call


def what(wait: WaitOn, counted: Rates | None) -> What:
    """For what it waits. Every reason with a name has words (a test)."""
    return OF_REASONS[wait.reason](wait, counted)


def _sleep(wait: WaitOn, _: Rates | None) -> What:
    return What(
        verb="sleeps",
        rest="",
        needed="",
        remedies=(
            Remedy(id="do-not-sleep", text=f"take the sleep out of {who(wait)}, or shorten it"),
            Remedy(id="wait-for-event", text="or wait for the event itself (queue.get, Event.wait) rather than a time"),
        ),
    )


def _file(wait: WaitOn, counted: Rates | None) -> What:
    name = PurePosixPath(wait.target).name if wait.target.startswith("/") else wait.target
    ahead = Remedy(id="read-ahead", text="read it once before the loop, or ahead of the step in another thread")
    less = Remedy(id="write-larger", text=f"write fewer and larger pieces in {who(wait)}: collect those of many steps")
    if wait.call in _SYNCS:
        less = Remedy(id="sync-less-often", text=f"call {wait.call} once every N steps, not after each write")
    off = Remedy(id="write-off-thread", text="or hand the data to a thread that writes while the step runs")
    return What(
        rest=f" for {name or 'a file'} ({wait.call}{_calls(wait, counted)})",
        remedies=(ahead,) if wait.call in _READS else (less, off),
    )


def _pipe(wait: WaitOn, counted: Rates | None) -> What:
    return What(
        rest=f" for the other end of a pipe ({wait.call}{_calls(wait, counted)})",
        remedies=(
            Remedy(id="work-ahead", text="have the other process work ahead, or use more of them"),
            Remedy(id="send-more-at-once", text="or send more with each message"),
        ),
    )


def _socket(wait: WaitOn, _: Rates | None) -> What:
    size = f", {format_bytes(wait.size)} a call" if wait.size else ""
    return What(
        rest=f" for {wait.target or 'a socket'} ({wait.call}{size})",
        remedies=(
            Remedy(id="batch-requests", text="ask for what several steps need with one request"),
            Remedy(id="request-ahead", text="or send the next request before the step, from another thread or a pool"),
        ),
    )


def _process(wait: WaitOn, _: Rates | None) -> What:
    return What(
        rest=f" for the process {wait.target or 'that it started'} to end",
        remedies=(
            Remedy(id="keep-process", text="start it once and keep it, or do its work in this process"),
            Remedy(id="start-ahead", text="or start the next one before the step runs, and collect it afterwards"),
        ),
    )


def _client(wait: WaitOn, _: Rates | None) -> What:
    return What(
        rest=f" for the next request{f' of {wait.target}' if wait.target else ''} ({wait.call})",
        remedies=(Remedy(id="more-requests", text="nothing to do here: it is idle until the next request comes"),),
        needed="; a service without requests is idle",
    )


def _events(wait: WaitOn, _: Rates | None) -> What:
    return What(
        rest=f" for the first event on several descriptors ({wait.call})",
        remedies=(Remedy(id="have-it-ready", text="prepare what it waits for before the step needs it"),),
    )


def _lock(wait: WaitOn, _: Rates | None) -> What:
    if wait.partners is not None and wait.partners.holder is not None:
        return _held(wait.partners.holder)
    if wait.handed_over and wait.partners is not None:
        return _handed(wait, wait.partners.waiting[0])
    return What(
        rest=" for a lock or a queue",
        remedies=(Remedy(id="have-it-ready", text="prepare what it waits for before the step needs it"),),
    )


def _held(holder: Partner) -> What:
    name = holder.threads[0] if len(holder.threads) == 1 else f"{len(holder.threads)} threads"
    where = holder.spot.function if holder.spot.function not in {"", "<module>"} else f"line {holder.spot.line}"
    does = _DOES.get(holder.reason, "runs")
    return What(
        rest=f" for a lock or a queue, while {where} {does} on another thread ({name})",
        remedies=(
            Remedy(id="shorten-holder", text=f"make {where} faster, or let more threads or processes do it"),
            Remedy(id="hold-lock-less", text=f"or keep no lock that the step needs while {where} {does}"),
        ),
    )


def _handed(wait: WaitOn, partner: Partner) -> What:
    other = partner.spot.function or f"line {partner.spot.line}"
    timeout = ", until its timeout" if wait.timed else ""
    return What(
        rest=f" for a lock or a queue{timeout}, while the other threads wait too ({other})",
        remedies=(
            Remedy(
                id="shorten-timeout" if wait.timed else "work-ahead",
                text=f"take what is there without waiting (get_nowait), or shorten the timeout in {who(wait)}"
                if wait.timed
                else f"let {other} go on before its answer is there, so that both sides work at the same time",
            ),
        ),
    )


def _calls(wait: WaitOn, counted: Rates | None) -> str:
    """``; 8 calls a step, 4 KiB each``, by the kernel's counters, else by the looks."""
    if counted is not None and counted.calls >= 1:
        size = f", {format_bytes(counted.bytes_per_call)} each" if counted.bytes_per_call else ""
        return f"; {counted.calls:.3g} reads and writes a step{size}"
    return f", {format_bytes(wait.size)} a call" if wait.size else ""


OF_REASONS: dict[str, Callable[[WaitOn, Rates | None], What]] = {
    "sleep": _sleep,
    "file": _file,
    "pipe": _pipe,
    "socket": _socket,
    "process": _process,
    "client": _client,
    "events": _events,
    "lock": _lock,
}
"""Words by reason."""
