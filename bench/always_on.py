"""Measures an always-on job: memory, open files, CPU time and disk of its sidecar over ten million records.

Usage: always_on.py [--records N] [--rate N] [--job-quota SIZE] [--python PATH] [--write]

Enables a separate virtual environment in which TensorFlow can be imported, starts a job there that writes records
faster than the governor would allow (so that weeks fit into minutes), and samples the sidecar every ten seconds.
Requirements: nothing grows between the second third and the last, the session stays within its quota, the CPU time per
record does not rise. ``--write`` puts the table into docs/benchmarks/always-on.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import _left_behind
from stepscope.collector.always_on import pth_file
from stepscope.launcher import jobs

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "always-on.md"
PROGRAM = ROOT / "bench" / "programs" / "left_on.py"
EVERY_S = 10.0
HEAD = """# A job that is left on

Printed by `make bench-always-on ARGS=--write`. The sidecar of a real job in an enabled environment, looked at every ten
seconds while the job writes records at five times the governor's limit. "cpu": the sidecar's, live analysis included,
as a share of one core since the last look.

```text
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The sidecar at one moment."""

    at_s: float
    records: int
    rss_bytes: int
    files: int
    cpu_s: float
    disk_bytes: int


def environment_of(folder: Path, python: str, quota: int) -> tuple[str, Path]:
    """An enabled virtual environment with this one's packages; its Python, and the folder of its sessions."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    found = pth_file.find_environment(str(folder / "venv" / "bin" / "python"))
    packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    (found.site_packages / "packages.pth").write_text(packages + "\n")
    package = str(Path(pth_file.__file__).resolve().parents[2])
    settings = pth_file.Settings(
        python=sys.executable, package=package, sessions=str(folder / "sessions"), job_quota_bytes=quota
    )
    pth_file.write(found, settings)
    return found.python, folder / "sessions"


def look(pid: int, session: Path, started: float, records: int) -> Look:
    """Measure the sidecar now."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    sizes = [path.stat().st_size for path in session.rglob("*") if path.is_file()]
    return Look(
        at_s=time.monotonic() - started,
        records=records,
        rss_bytes=int(stat[21]) * os.sysconf("SC_PAGE_SIZE"),
        files=len(os.listdir(f"/proc/{pid}/fd")),  # noqa: PTH208 - one directory
        cpu_s=(int(stat[11]) + int(stat[12])) / ticks,
        disk_bytes=sum(sizes),
    )


def follow(job: subprocess.Popen[str]) -> list[Look]:
    """Measure the sidecar until the job ends."""
    looks: list[Look] = []
    started = time.monotonic()
    while job.poll() is None:
        time.sleep(EVERY_S)
        status = next((j.status for j in jobs.running() if j.status.pid == job.pid), None)
        if status is None or not status.sidecar_pid:
            continue
        try:
            looks.append(look(status.sidecar_pid, Path(status.session), started, status.records))
        except OSError:
            break
        print(row(looks[-1], looks[-2] if len(looks) > 1 else None), flush=True)
    return looks


def row(now: Look, before: Look | None) -> str:
    """One line of the table."""
    cpu = (now.cpu_s - before.cpu_s) / (now.at_s - before.at_s) if before else 0.0
    rate = (now.records - before.records) / (now.at_s - before.at_s) if before else 0.0
    mib = 1 << 20
    return (
        f"{now.at_s:>7.0f} {now.records:>10,} {rate:>10,.0f} {now.rss_bytes / mib:>8.1f} {now.files:>6} "
        f"{100 * cpu:>7.2f} {now.disk_bytes / mib:>9.1f}"
    )


def verdict(looks: list[Look], quota: int) -> list[str]:
    """The requirements and whether they hold: medians of the second and the last third."""
    third = len(looks) // 3
    middle, last = looks[third : 2 * third], looks[2 * third :]

    def cost(part: list[Look]) -> float:
        return 1e9 * (part[-1].cpu_s - part[0].cpu_s) / max(1, part[-1].records - part[0].records)

    memory = [median(look.rss_bytes for look in part) / (1 << 20) for part in (middle, last)]
    files = [max(look.files for look in part) for part in (middle, last)]
    disk = max(look.disk_bytes for look in looks) / (1 << 20)
    costs = [cost(part) for part in (middle, last)]
    return [
        f"memory, median of the second and the last third: {memory[0]:.1f} and {memory[1]:.1f} MiB",
        f"open files, at most: {files[0]} and {files[1]}",
        f"CPU time a record: {costs[0]:.0f} and {costs[1]:.0f} ns",
        f"disk, at most: {disk:.1f} of {quota / (1 << 20):.0f} MiB",
    ]


@_left_behind.nothing_stays()
def main() -> None:
    """Run the job and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--job-quota-mib", type=int, default=32)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    quota = options.job_quota_mib << 20
    head = f"{'seconds':>7} {'records':>10} {'a second':>10} {'MiB':>8} {'files':>6} {'cpu %':>7} {'disk MiB':>9}"
    print(head)
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "STEPSCOPE"))}
    with tempfile.TemporaryDirectory() as folder:
        python, sessions = environment_of(Path(folder), options.python, quota)
        command = [python, str(PROGRAM), str(options.records), str(options.rate)]
        job = subprocess.Popen(command, env=plain, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        looks = follow(job)
        out, _ = job.communicate()
        if out.split()[-1:] != [str(options.records)] or len(looks) < 6:
            raise SystemExit(f"the job did not end as it should: {out!r}")
        (session,) = sessions.glob("*.stepscope")
        while json.loads((session / "manifest.json").read_text())["state"] == "running":
            time.sleep(1.0)
        lost = sum(w["lost_records"] for w in json.loads((session / "manifest.json").read_text())["workers"])
    lines = [*verdict(looks, quota), f"records lost: {lost}"]
    print("\n".join(lines))
    if options.write:
        shown = looks[:: max(1, len(looks) // 20)]
        table = [row(now, before) for before, now in zip([None, *shown], shown, strict=False)]
        PAGE.write_text(HEAD + "\n".join([head, *table, "", *lines]) + "\n```\n")


if __name__ == "__main__":
    main()
