"""Are causal slopes right? Jobs with a place that is exposed, hidden or half hidden, in PyTorch, TensorFlow and Keras.

For each job: ``stepscope whatif --try slopes:load``, and in the same minutes the program itself with known extra time
in every second 40 batches, which computes the slope by its own clock. By construction it is 1, 0 and
0.5. The losses that the delayed run prints must be those of the unchanged run, bit by bit. What has been run is kept in
``--results``, so that the benchmark may be stopped and continued; the first run of a job counts.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stepscope.model.report.whatif import WhatIfReport
from stepscope.model.slope import WhatIfSlope

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "slopes.md"
RESULTS = ROOT / "build" / "slopes.jsonl"
JOBS_PY = ROOT / "bench" / "programs" / "slopes_job.py"
JOBS = tuple(
    f"{framework} {kind} {work}"
    for work in ("wait", "compute")
    for framework in ("torch", "tf", "keras")
    for kind in ("exposed", "hidden", "half")
    if work == "wait" or (kind != "half" and framework != "tf")
)
BUILT = {"exposed": 1.0, "hidden": 0.0, "half": 0.5}
"""Slope by construction."""
MARK = "<!-- results -->"
NEAR, WIDTH, NARROW = 0.15, 0.4, 0.3
STEPS, OWN_STEPS, EXTRA_MS = 100_000, 2_000, 30
TIMEOUT_S = 900


class Row(Struct, frozen=True, kw_only=True):
    """A job."""

    job: str
    seconds: int
    own: float
    """Slope by the program's own clock."""
    error: float
    """Its standard error."""
    equal: bool | None
    """Whether its losses stayed as they were; None: too few were printed."""
    load: float
    """Load average of the machine at the end."""
    found: WhatIfSlope

    @property
    def right(self) -> bool | None:
        """Whether it is within 0.15 of what is built, or that in its interval; None: no slope is said."""
        if self.found.why:
            return None
        narrow = self.found.high - self.found.low <= WIDTH
        return abs(self.found.slope - self.built) <= NEAR or (self.holds(self.built) and narrow)

    @property
    def agrees(self) -> bool:
        """Whether the program's own clock says no other slope: both intervals overlap."""
        reach = 2 * self.error + (self.found.high - self.found.low) / 2
        return abs(self.found.slope - self.own) <= reach

    @property
    def built(self) -> float:
        """The slope by construction."""
        return BUILT[self.job.split()[1]]

    def holds(self, truth: float) -> bool:
        """Whether the interval holds a slope."""
        return self.found.low <= truth <= self.found.high


def whatif(python: str, job: str, seconds: int, folder: Path) -> tuple[WhatIfSlope, bool | None]:
    """The slope of a job, and whether its losses stayed as they were."""
    command = [sys.executable, "-m", "stepscope", "whatif", "--try", "slopes:load", "--time", f"{seconds}s", "--json"]
    command += ["--folder", str(folder), "--", python, str(JOBS_PY), *job.split(), str(STEPS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return WhatIfSlope(trial="slopes:load", why=why), None
    plain, delayed = (_losses(folder, part) for part in ("as-it-is", "slopes"))
    common = plain.keys() & delayed.keys()
    report = msgspec.json.decode(done.stdout, type=WhatIfReport)
    return report.slopes[0], all(plain[at] == delayed[at] for at in common) if common else None


def _losses(folder: Path, part: str) -> dict[str, str]:
    return dict(re.findall(r"at (\d+) loss (\w+)", "".join(log.read_text() for log in folder.glob(f"*{part}*.log"))))


def by_hand(python: str, job: str) -> tuple[float, float]:
    """(slope, standard error) by the program's own clock."""
    command = [python, str(JOBS_PY), *job.split(), str(OWN_STEPS), str(EXTRA_MS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    found = re.search(r"slope (\S+) error (\S+)", done.stdout)
    return (float(found[1]), float(found[2])) if found else (float("nan"), float("nan"))


def one(python: str, job: str, seconds: int) -> Row:
    """A row."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        truth = pool.submit(by_hand, python, job)
        found, equal = whatif(python, job, seconds, Path(folder) / "tried")
        own, error = truth.result()
    return Row(job=job, seconds=seconds, own=own, error=error, equal=equal, load=round(os.getloadavg()[0]), found=found)


def page(rows: list[Row]) -> str:
    """The page."""
    said = [row for row in rows if not row.found.why]
    equal = [row for row in rows if row.equal is not None]
    summary = (
        f"{len(rows)} jobs: {len(said)} slopes said, {sum(bool(row.right) for row in said)} of them right (within "
        f"{NEAR} of what is built, or that inside an interval of at most {WIDTH}). The interval holds what is built in "
        f"{sum(row.holds(row.built) for row in said)}, is narrower than {NARROW} in "
        f"{sum(row.found.high - row.found.low < NARROW for row in said)}, and overlaps that by hand in "
        f"{sum(row.agrees for row in said)}. Losses bit-equal in {sum(bool(row.equal) for row in equal)} of "
        f"{len(equal)} jobs that printed any."
    )
    lines = [
        "| job | slope | interval | by hand | built | right | cost / step | buffered | pairs | bit-equal | load |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *map(_line, rows),
    ]
    head = PAGE.read_text().split(MARK)[0] if PAGE.exists() else "# Slopes\n\n"
    return "\n".join([f"{head}{MARK}", "", summary, "", *lines, ""])


def _line(row: Row) -> str:
    found = row.found
    words = f"none: {found.why}" if found.why else f"{found.slope:.2f}"
    ends = "" if found.why else f"{found.low:.2f} to {found.high:.2f}"
    cost = "" if found.why else f"{found.cost_ns / 1e6:.1f} / {found.step_ns / 1e6:.1f} ms"
    right = "" if row.right is None else "yes" if row.right else "**no**"
    same = "not seen" if row.equal is None else "yes" if row.equal else "**no**"
    own = f"{row.own:.2f} ± {2 * row.error:.2f}"
    cells = (
        row.job,
        words,
        ends,
        own,
        f"{row.built:g}",
        right,
        cost,
        found.buffered,
        found.pairs,
        same,
        f"{row.load:.0f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def main() -> int:
    """Run what is missing, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="has torch, tensorflow and keras")
    parser.add_argument("--seconds", type=int, default=100, help="of each job's blocks")
    parser.add_argument("--only", default="", help="jobs whose name has this text")
    parser.add_argument("--at-once", type=int, default=1, help="jobs that run at the same time")
    parser.add_argument("--by-hand", action="store_true", help="only the truth by hand, again, of jobs that have run")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    given = parser.parse_args()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    lines = given.results.read_bytes().splitlines() if given.results.exists() else []
    rows = [msgspec.json.decode(line, type=Row) for line in lines]
    known = {row.job for row in rows if row.seconds == given.seconds}
    if given.by_hand:
        with ThreadPoolExecutor(given.at_once) as pool:
            wanted = [row for row in rows if given.only in row.job]
            truths = pool.map(lambda row: by_hand(given.python, row.job), wanted)
            truth_of = {row.job: truth for row, truth in zip(wanted, truths, strict=True)}
        rows = [
            replace(row, own=truth_of.get(row.job, (row.own,))[0], error=truth_of.get(row.job, (0, row.error))[1])
            for row in rows
        ]
        given.results.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    missing = [] if given.by_hand else [job for job in JOBS if given.only in job and job not in known]
    with ThreadPoolExecutor(given.at_once) as pool:
        for row in pool.map(lambda job: one(given.python, job, given.seconds), missing):
            rows.append(row)
            with given.results.open("ab") as file:
                file.write(msgspec.json.encode(row) + b"\n")
            print(
                time.strftime("%H:%M"), row.job, row.found.why or f"{row.found.slope:.2f}", f"{row.own:.2f}", flush=True
            )
    order = {job: place for place, job in enumerate(JOBS)}
    text = page(sorted((row for row in rows if row.seconds == given.seconds), key=lambda row: order[row.job]))
    print(text)
    if given.write:
        PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
