"""Sessions and groups of sessions that are compared: the test chooses how they differ."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace
from tests.derive.sessions import MS, SCRIPT, Frame, Job, S

from stepscope.derive.view import SessionView
from stepscope.model.report.compare import CompareReport, Difference
from stepscope.model.session.session import HostInfo, Session
from stepscope.use_cases.comparing import numbers
from stepscope.use_cases.comparing.numbers import SessionNumbers

STEPS = 60
NEAR = HostInfo(name="near", cpus=2)
SOURCE = "import keras\n\n\ndef load(path):\n    return read(path)\n"
NOISE = (0.004, -0.012, 0.009, 0.021, -0.007, 0.002, -0.018, 0.011, -0.004, 0.006)
"""Logarithms of run times: 1.2 % of run-to-run noise."""
OTHER = NOISE[5:] + NOISE[:5]


def session(
    *,
    step_ns: float = 100 * MS,
    wait_ns: float = 20 * MS,
    batch: int = 32,
    started_s: int = 0,
    seed: int = 0,
    host: HostInfo = NEAR,
    exit_code: int = 0,
) -> Session:
    """A loop around a tf.function: each step waits for its batch, then computes; step times vary by 3 %."""
    job = Job(sources={SCRIPT: SOURCE}, host=host, exit_code=exit_code)
    job.framework()
    lengths = step_ns * np.exp(np.random.default_rng(seed).normal(0.0, 0.03, STEPS))
    starts = S + np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    wait, call = job.nexts(), job.function(call_file=SCRIPT, call_line=9, call_function="main")
    iterator = job.iterator(batch=batch)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=False):
        wait.at(start, int(wait_ns), arg=iterator)
        call.at(start + int(wait_ns), int(length - wait_ns - 2 * MS), arg=batch)
    job.ended_ns = int(starts[-1]) + S
    job.samples([int(start) + 5 * MS for start in starts[:-1]], Frame(SCRIPT, "load", 5))
    made = job.session()
    manifest = msgspec.structs.replace(made.manifest, started_unix_ns=started_s * S)
    return replace(made, manifest=manifest)


@cache
def run(
    name: str = "a",
    *,
    step_ns: float = 100 * MS,
    wait_ns: float = 20 * MS,
    batch: int = 32,
    started_s: int = 0,
    seed: int = 0,
    host: HostInfo = NEAR,
    exit_code: int = 0,
) -> SessionNumbers:
    """The numbers of such a session."""
    made = session(
        step_ns=step_ns,
        wait_ns=wait_ns,
        batch=batch,
        started_s=started_s,
        seed=seed,
        host=host,
        exit_code=exit_code,
    )
    return numbers.of_view(Path(name), SessionView(made))


def group(
    noise: Sequence[float], *, factor: float = 1.0, begin_s: int = 0, every_s: int = 1000
) -> list[SessionNumbers]:
    """One run for each logarithm of a run's time, made at regular times."""
    return [
        run(
            f"{begin_s}-{number}",
            step_ns=100 * MS * factor * float(np.exp(log)),
            started_s=begin_s + number * every_s,
            seed=begin_s + number,
        )
        for number, log in enumerate(noise)
    ]


def named(report: CompareReport, section: str, name: str) -> Difference:
    """The difference of that name."""
    (found,) = (one for one in report.differences if (one.section, one.name) == (section, name))
    return found
