"""Exchanges of hosts that do nothing else, recorded once; and drifts that are imposed on them, whose truth is known."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import _hosts
from _hosts import Network, OneWay
from stepscope import store
from stepscope.derive.clocks import gates, session_links
from stepscope.derive.clocks.gates import FourStamps
from stepscope.derive.clocks.solve import Link, solve

if TYPE_CHECKING:
    from stepscope.tables.records import I64

STEPSCOPE = Path(sys.executable).with_name("stepscope")
HOSTS = 5
PATIENCE_S = 180.0
CHECKED = 200
"""Moments at which offsets are compared with the truth."""


def record(minutes: float, jitter_ms: float, file: Path) -> None:
    """Keep the exchanges of hosts without another job, each with its truth."""
    folder = Path(tempfile.mkdtemp(prefix="stepscope-distributed-"))
    path = OneWay(delay_s=0.0005, jitter_s=jitter_ms / 1e3)
    found: list[I64] = []
    try:
        with _hosts.hosts(HOSTS, Network(paths={"*": path}), folder) as hosts:
            key = folder / "key"
            key.write_bytes(os.urandom(32))
            key.chmod(0o600)
            names = ",".join(host.address for host in hosts)
            words = [str(STEPSCOPE), "run", "-q", "--clock-hosts", names, "--key-file", str(key)]
            jobs = [
                subprocess.Popen(
                    host.command(
                        [
                            *words,
                            "--session",
                            str(folder / f"host-{host.index}.stepscope"),
                            "--",
                            "sleep",
                            str(60 * minutes),
                        ]
                    ),
                    cwd=folder,
                )
                for host in hosts
            ]
            if not _hosts.all_ended(jobs, 60 * minutes + PATIENCE_S):
                raise RuntimeError("a host failed")
            sessions = [store.open_session(folder / f"host-{host.index}.stepscope") for host in hosts]
            index = {session_links.domain(session): n for n, session in enumerate(sessions)}
            for here, session in enumerate(sessions):
                for there, quads in session_links.quads_of(session).items():
                    away = int((hosts[index[there]].skew_s - hosts[here].skew_s) * 1e9)
                    columns = (quads.burst, quads.sent_ns, quads.received_ns - away, quads.answered_ns - away)
                    number = np.full(len(quads), len(found))
                    found.append(np.stack([number, *columns, quads.returned_ns]))
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, np.concatenate(found, axis=1))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def drifts(file: Path, count: int) -> list[str]:
    """Recorded exchanges of one link, each time with another offset and drift: the truth is what was imposed."""
    rng = np.random.default_rng(1)
    errors, bounds, halves, inside = [], [], [], 0
    recorded = np.load(file)
    links = [recorded[1:, recorded[0] == number] for number in np.unique(recorded[0])]
    for number in range(count):
        burst, sent, received, answered, returned = links[number % len(links)]
        offset, drift = float(rng.uniform(-1e12, 1e12)), float(rng.uniform(-5e-5, 5e-5))
        start = int(sent[0])

        received, answered = (
            at + np.rint(offset + drift * (at - start)).astype(np.int64) for at in (received, answered)
        )
        quads = FourStamps(burst=burst, sent_ns=sent, received_ns=received, answered_ns=answered, returned_ns=returned)
        first, last = float(sent[0]), float(returned[-1])
        model = solve([Link(a="a", b="b", gates=gates.of_probes(quads))], "a", span=(first, last))
        at = np.linspace(first, last, CHECKED)
        truth = offset + drift * (at - start)
        error, bound = np.abs(model.clocks["b"].offset(at) - truth) / 1e3, model.clocks["b"].bound(at) / 1e3
        inside += bool((error <= bound).all())
        errors.append(error)
        bounds.append(bound)
        halves.append(float((returned - sent - (answered - received)).min()) / 2e3)
    over = np.max(bounds, axis=1) - np.array(halves)
    minutes = (last - first) / 60e9
    return [
        f"{count} offsets and drifts on {len(links)} recorded links of {minutes:.0f} minutes:",
        f"truth within the bounds in {inside}",
        f"error p95 {np.percentile(errors, 95):.0f} us, largest {np.max(errors):.0f} us",
        f"half of the shortest round trip {np.median(halves):.0f} us (median)",
        f"largest bound beyond it {np.median(over):.0f} us (median), {over.max():.0f} us (worst)",
    ]
