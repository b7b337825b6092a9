"""Lines of each package that the tests run which start no TensorFlow and no browser; ``--write`` also writes the page.

Processes that tests start count, too: commands, jobs with the agent, sidecars. Of those that SIGKILL ends nothing is
known. Some tests fail under coverage: they ask what else runs in a process. The page has their number.

Usage: covered.py [--write] [PACKAGE ...]

Of packages that are named, the tests in their own folders alone run, and the table has no others.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "coverage.md"
CHOSEN = "not tf and not browser and not slow"
NICE = 10
HEAD = """# Lines that the fast tests run

Printed by `make coverage ARGS=--write`: lines of code that ran under the tests that start no TensorFlow and no browser
(`make test-fast`), in their processes and in those that they start. A line that ran is not a line that was checked; one
that did not run was certainly not. Probes of frameworks and the web page's routes have most of their tests among those
that are left out here. `ARGS="--write store wire"` measures some packages alone, each by the tests in its own folder.

"""


def run(folder: Path, tests: list[str]) -> str:
    """Run the tests and say how they ended: pytest's last line."""
    os.environ["COVERAGE_FILE"] = str(folder / "data")
    os.nice(NICE)
    coverage = (sys.executable, "-m", "coverage")
    pytest = ("pytest", "--quiet", "--color=no", "-p", "no:cacheprovider", "-m", CHOSEN, *tests)
    done = subprocess.run((*coverage, "run", "-m", *pytest), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    (ROOT / ".coverage.log").write_text(done.stdout, encoding="utf-8")
    subprocess.run((*coverage, "combine", "--quiet"), cwd=ROOT, check=True)
    subprocess.run((*coverage, "json", "--quiet", "-o", str(folder / "lines.json")), cwd=ROOT, check=True)
    return done.stdout.rstrip().rpartition("\n")[2].strip("= ")


def by_package(files: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[str, tuple[int, int]]:
    """Lines that ran and lines of code of each package of ``stepscope``; modules outside of packages are ``.``."""
    counts: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for name, file in files.items():
        inside = name.replace("\\", "/").removeprefix("src/").removeprefix("stepscope/")
        package = inside.split("/")[0] if "/" in inside else "."
        ran, lines = counts[package]
        counts[package] = (ran + file["summary"]["covered_lines"], lines + file["summary"]["num_statements"])
    return dict(sorted(counts.items()))


def table(counts: Mapping[str, tuple[int, int]]) -> str:
    """Rows of packages, and of all of them."""
    total = (sum(ran for ran, _ in counts.values()), sum(lines for _, lines in counts.values()))
    rows = [*counts.items(), ("all", total)]
    return "package         lines    ran   share\n" + "".join(
        f"{name:<12} {lines:>8,} {ran:>6,} {100 * ran / max(1, lines):>5.1f} %\n" for name, (ran, lines) in rows
    )


def main() -> int:
    """Run, print, perhaps write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/coverage.md")
    parser.add_argument("packages", nargs="*", help="packages with a folder in tests/ (default: all)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        ended = run(Path(scratch), [f"tests/{name}" for name in options.packages])
        files = json.loads((Path(scratch) / "lines.json").read_text(encoding="utf-8"))["files"]
    counts = by_package(files)
    made = table({name: counts[name] for name in options.packages or counts})
    print(f"{made}{ended}; the tests' output: .coverage.log")
    if options.write:
        day = dt.datetime.now(tz=dt.timezone.utc).date()
        named = " ".join(options.packages)
        which = f"tests in the packages' own folders ({named})" if named else "all packages"
        about = f"{day}, Python {platform.python_version()}, {which}: {ended}.\n"
        PAGE.write_text(f"{HEAD}```text\n{made}```\n\n{about}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
