"""Five hosts on one machine: are clocks within their bounds, and is the cause of slow steps named, not an innocent?

Workers run ``programs/ring.py`` under ``stepscope run --clock-hosts``: 10 ms of own work, then a ring all-reduce over
real sockets. Each has a network namespace and a time namespace with another clock; a relay lies between them
(``_hosts``).
Conditions: base, delay (10 ms each way between hosts 1 and 2), loss (1 % there, 1 ms round trip everywhere), rate (20
Mbit/s from host 1), straggler (host 3 works 30 ms longer), reader (host 3 pauses before each read). By root.

Printed for each condition: offsets against the truth and their bounds; what was named; and what the order of arrival
would have said. Runs are kept in ``--results``; what is there is not run again, so that a few can be made at a time.

Time namespaces have constant offsets. For drift, ``--record MINUTES`` keeps the exchanges of hosts that do nothing else
(1 ms round trip, ``--jitter`` ms on top); ``--drifts N`` imposes N random offsets and drifts of up to 50 ppm on them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

import _clock_drifts
import _hosts
from _hosts import Network, OneWay
from stepscope import store
from stepscope.causes.system import link_limits
from stepscope.derive.clocks import session_links
from stepscope.derive.machine import tcp_links

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _hosts import Host
    from stepscope.derive.clocks.host_clock import ClockModel
    from stepscope.model.session.session import Session
    from stepscope.tables.records import F64, I64

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "distributed.md"
RESULTS = ROOT / "build" / "distributed.jsonl"
RING = ROOT / "bench" / "programs" / "ring.py"
STEPSCOPE = Path(sys.executable).with_name("stepscope")
COUNT = 5
SLOW = 3
"""The host of which own work and reads of a condition are."""
SECONDS = 6
BYTES = 262_144
OWN_MS = 10
TIMEOUT_S = 180.0
FIRST = 5
"""Steps that are left out: connections begin slowly."""
LEAST = 15
"""Steps below which a run says nothing of causes: its workers had no CPUs. With enough of them the slowest condition
makes 20.
"""
LATE_RATIO = 0.05
"""Own work above the median of the workers by this share of the period makes a straggler (knowledge of the field)."""
LATE_MADS = 3.0
CHECKED = 200
"""Moments of a session at which offsets are compared with the truth."""
HEAD = (
    "condition",
    "truth within the bounds",
    "error p95 us, median run / worst",
    "largest error us",
    "bound us, median / worst",
    "between exchanges",
    "half of the shortest round trip us",
)
NEAR = OneWay()
MS = OneWay(delay_s=0.0005)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What is wrong, and what names it."""

    network: Network
    named: str
    """What has to be named; empty: nothing."""
    own_ms: int = OWN_MS
    """Own work of host 3."""
    read_ms: int = 0
    """Its pause before each read."""
    size: int = BYTES
    """Bytes of an all-reduce."""


CONDITIONS = {
    "base": Condition(network=Network(paths={"*": NEAR}), named=""),
    "delay": Condition(
        network=Network(paths={"*": NEAR, "1 2": OneWay(delay_s=0.01), "2 1": OneWay(delay_s=0.01)}),
        named="distance 1-2",
    ),
    "loss": Condition(
        network=Network(
            paths={"*": MS, "1 2": OneWay(delay_s=0.0005, loss=0.01), "2 1": OneWay(delay_s=0.0005, loss=0.01)}
        ),
        named="loss 1-2",
    ),
    "rate": Condition(network=Network(paths={"*": NEAR}, rates={1: "20mbit"}), named="rate 1-2"),
    "straggler": Condition(network=Network(paths={"*": NEAR}), named="straggler 3", own_ms=40),
    "reader": Condition(network=Network(paths={"*": NEAR}), named="peer-reads-slowly 2-3", read_ms=4, size=8 * BYTES),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run. Of one with fewer than ``LEAST`` steps only the clocks count."""

    condition: str
    number: int
    commit: str
    steps: int
    period_ms: float
    named: tuple[str, ...]
    """What was named, the heaviest first."""
    order: str
    """Who came last most often, and in what share of the steps."""
    errors_us: tuple[float, ...]
    """Of each host but the reference: 95th percentile of the offset's error."""
    largest_us: tuple[float, ...]
    bounds_us: tuple[float, ...]
    """Largest bound of each, in the whole session."""
    between_us: tuple[float, ...]
    """The same between the first exchange and the last."""
    half_rtt_us: tuple[float, ...]
    """Half of the shortest round trip of its exchanges with the reference."""
    inside: bool
    """Whether the truth was within the bounds at every moment."""


def run(name: str, number: int, commit: str) -> Row:
    """One run of a condition.

    Raises:
        RuntimeError: a worker failed.
    """
    condition = CONDITIONS[name]
    folder = Path(tempfile.mkdtemp(prefix="stepscope-distributed-"))
    try:
        with _hosts.hosts(COUNT, condition.network, folder) as hosts:
            jobs = _started(condition, hosts, folder)
            if not _hosts.all_ended(jobs, TIMEOUT_S):
                raise RuntimeError(f"{name} {number}: a worker failed: {_errors(folder)}")
            return _read(name, number, commit, hosts, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _started(condition: Condition, hosts: Sequence[Host], folder: Path) -> list[subprocess.Popen[bytes]]:
    key = folder / "key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    names = ",".join(host.address for host in hosts)
    jobs = []
    for host in hosts:
        slow = host.index == SLOW
        own, read = (condition.own_ms, condition.read_ms) if slow else (OWN_MS, 0)
        words = [str(STEPSCOPE), "run", "-q", "--clock-hosts", names, "--key-file", str(key)]
        words += ["--session", str(_session(folder, host.index)), str(RING), str(host.index), names]
        words += [str(SECONDS), str(condition.size), str(own), str(read)]
        with (folder / f"errors-{host.index}").open("wb") as errors:
            jobs.append(subprocess.Popen(host.command(words), cwd=folder, stderr=errors, stdout=errors))
    return jobs


def _session(folder: Path, index: int) -> Path:
    return folder / f"host-{index}.stepscope"


def _errors(folder: Path) -> str:
    return " ".join(path.read_text(errors="replace")[-300:] for path in sorted(folder.glob("errors-*")))


def _read(name: str, number: int, commit: str, hosts: Sequence[Host], folder: Path) -> Row:
    sessions = [store.open_session(_session(folder, host.index)) for host in hosts]
    model = session_links.model_of(sessions)
    if model is None:
        raise RuntimeError("no clocks")
    stamps = [np.array(json.loads((folder / f"ring-{host.index}.json").read_text())["steps"]) for host in hosts]
    count = min(len(one) for one in stamps)
    steps = np.stack([one[FIRST:count] for one in stamps]).astype(np.int64)
    errors = [
        _errors_of(model, host, session, sessions[0]) for host, session in zip(hosts[1:], sessions[1:], strict=True)
    ]
    enough = count - FIRST >= LEAST
    period = float(np.diff(steps[0, :, 2]).mean()) / 1e6 if enough else 0.0
    return Row(
        condition=name,
        number=number,
        commit=commit,
        steps=count - FIRST,
        period_ms=period,
        named=tuple(_named(sessions, hosts, steps)) if enough else (),
        order=_order(steps, hosts) if enough else "",
        errors_us=tuple(float(np.percentile(error, 95)) for error, _ in errors),
        largest_us=tuple(float(error.max()) for error, _ in errors),
        bounds_us=tuple(float(bound.max()) for _, bound in errors),
        between_us=tuple(_between(model, session) for session in sessions[1:]),
        half_rtt_us=tuple(_half_rtt(session, sessions[0]) for session in sessions[1:]),
        inside=all(bool((error <= bound).all()) for error, bound in errors),
    )


def _errors_of(model: ClockModel, host: Host, session: Session, reference: Session) -> tuple[F64, F64]:
    """Errors of a host's offset over the session, and its bounds. Microseconds."""
    clock = model.clocks[session_links.domain(session)]
    first = reference.manifest.origin_monotonic_ns
    at = np.linspace(first, first + reference.manifest.ended_ns, CHECKED)
    truth = host.skew_s * 1e9
    return np.abs(clock.offset(at) - truth) / 1e3, clock.bound(at) / 1e3


def _between(model: ClockModel, session: Session) -> float:
    """Largest bound of a host between its first exchange with the reference and its last. Microseconds."""
    quads = session_links.quads_of(session)[model.reference]
    at = np.linspace(float(quads.received_ns[0]), float(quads.answered_ns[-1]), CHECKED)
    return float(model.clocks[session_links.domain(session)].bound(at).max()) / 1e3


def _half_rtt(session: Session, reference: Session) -> float:
    """Half of the shortest round trip to the reference. Microseconds."""
    quads = session_links.quads_of(session)[session_links.domain(reference)]
    trips = quads.returned_ns - quads.sent_ns - (quads.answered_ns - quads.received_ns)
    return float(trips.min()) / 2e3


def _named(sessions: Sequence[Session], hosts: Sequence[Host], steps: I64) -> list[str]:
    """Stragglers by their own time, which needs no common clock; then links by the kernel's counters."""
    own = (steps[:, :, 1] - steps[:, :, 0]).astype(float)
    late = np.maximum(0.0, own - np.median(own, axis=0))
    period = float(np.diff(steps[0, :, 2]).mean())
    spread = float(np.median(np.abs(own - np.median(own))))
    blamed = [
        (float(np.median(late[host.index])), f"straggler {host.index}")
        for host in hosts
        if np.median(late[host.index]) > max(LATE_RATIO * period, LATE_MADS * spread)
    ]
    found = [text for _, text in sorted(blamed, reverse=True)]
    number = {host.address: host.index for host in hosts}
    for session, host in zip(sessions, hosts, strict=True):
        for limit in link_limits.limits(tcp_links.of(session), period):
            other = number.get(limit.link.there)
            if limit.reason not in ("none", "we-read-slowly") and other is not None:
                found.append(f"{limit.reason} {host.index}-{other}")
    return found


def _order(steps: I64, hosts: Sequence[Host]) -> str:
    """Who enters last most often, by the true clock."""
    entered = np.stack([steps[host.index, :, 1] - int(host.skew_s * 1e9) for host in hosts])
    last = Counter(np.argmax(entered, axis=0).tolist()).most_common(1)[0]
    return f"{last[0]} ({100 * last[1] / entered.shape[1]:.0f} %)"


def table(rows: Sequence[Row]) -> list[str]:
    """The page's tables."""
    lines = [
        "| condition | runs | starved | step ms | named correctly | an innocent named | last to arrive, by order |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for name, condition in CONDITIONS.items():
        made = [row for row in rows if row.condition == name]
        mine = [row for row in made if row.steps >= LEAST]
        if not mine:
            continue
        right = sum((condition.named in row.named) if condition.named else not row.named for row in mine)
        wrong = sum(any(text != condition.named for text in row.named) for row in mine)
        order = ", ".join(f"{who} in {n}" for who, n in Counter(row.order.split()[0] for row in mine).most_common(3))
        period = float(np.median([row.period_ms for row in mine]))
        starved = len(made) - len(mine)
        lines.append(f"| {name} | {len(mine)} | {starved} | {period:.1f} | {right} | {wrong} | host {order} |")
    lines += ["", f"| {' | '.join(HEAD)} |", "|---|---:|---:|---:|---:|---:|---:|"]
    for name in CONDITIONS:
        mine = [row for row in rows if row.condition == name]
        if not mine:
            continue
        errors = [max(row.errors_us) for row in mine]
        bounds = [bound for row in mine for bound in row.bounds_us]
        between = [bound for row in mine for bound in row.between_us]
        halves = [half for row in mine for half in row.half_rtt_us]
        largest = max(max(row.largest_us) for row in mine)
        cells = (
            f"{sum(row.inside for row in mine)} of {len(mine)}",
            f"{np.median(errors):.0f} / {max(errors):.0f}",
            f"{largest:.0f}",
            f"{np.median(bounds):.0f} / {max(bounds):.0f}",
            f"{np.median(between):.0f} / {max(between):.0f}",
            f"{np.median(halves):.0f}",
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def kept(file: Path) -> list[Row]:
    """Runs that were made."""
    if not file.exists():
        return []
    return [msgspec.json.decode(line, type=Row) for line in file.read_text().splitlines()]


def main() -> int:
    """Make the runs that are missing, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="of each condition, with those that are kept")
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only-print", action="store_true")
    parser.add_argument("--record", type=float, metavar="MINUTES", help="record exchanges for --drifts, then end")
    parser.add_argument("--jitter", type=float, default=0.0, metavar="MS", help="mean jitter of --record")
    parser.add_argument("--drifts", type=int, default=0, metavar="N", help="print what N imposed drifts give, then end")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # hosts are removed then, too
    why = _hosts.why_not()
    if why and not options.only_print:
        sys.stdout.write(f"not here: {why}\n")
        return 0
    exchanges = options.results.with_name("distributed-exchanges.npy")
    if options.record:
        _clock_drifts.record(options.record, options.jitter, exchanges)
        return 0
    if options.drifts:
        sys.stdout.write("\n".join(_clock_drifts.drifts(exchanges, options.drifts)) + "\n")
        return 0
    options.results.parent.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    names = options.conditions.split(",")
    for number in range(0 if not options.only_print else options.runs, options.runs):
        for name in names:
            if any((row.condition, row.number) == (name, number) for row in kept(options.results)):
                continue
            row = run(name, number, commit.stdout.strip())
            with options.results.open("a") as file:
                file.write(msgspec.json.encode(row).decode() + "\n")
            sys.stdout.write(
                f"{name} {number}: {', '.join(row.named) or 'nothing'} · order: {row.order} · within {row.inside}, "
                f"error {max(row.largest_us):.0f} us, bound {max(row.bounds_us):.0f} us\n"
            )
            sys.stdout.flush()
    sys.stdout.write("\n".join(table(kept(options.results))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
