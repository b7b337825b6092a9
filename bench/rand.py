"""The six case studies of one segmentation network (bench/rand): is each found, and does its trial take it away?

For each trouble: samples per second beside the author's, in rounds that take turns with the base (medians, the base is
100); the first finding of ``stepscope run`` and its stage; the trial that ``stepscope whatif`` without options tries
first, and what it leaves of the time, beside the fix made by hand (``--against base.py``). The network input comes from
a server in a network namespace, behind a shaped link (root and iproute2). What was run is kept in ``--results`` for
each state of ``src``, so that the benchmark may be stopped and continued.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TypeAlias

import _far

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "bench" / "rand"
PAGE = ROOT / "docs" / "benchmarks" / "rand.md"
RESULTS = ROOT / "build" / "rand.jsonl"
BASE = "base"
TIMEOUT_S = 900
AGREES = 0.10
"""Difference of a trial's ratio from that of the fix, as a share of the fixed time."""
MACHINE = "CFG001"
"""Finding about other programs on the machine: true where they are."""
HEAD = """# Six troubles of one network

Printed by `make bench-rand ARGS=--write`: a segmentation network and six troubles after the case studies of
training-pipeline analysis (Rand 2020), [bench/rand](../../bench/rand/README.md). *author*, *here*: samples per second
as a percentage of the base. The author's machine has a GPU, this one computes on its CPU: what is little there may be
much here; [gpu.md](gpu.md) has the same on a GPU. *whatif*: the trial that it tries first, without options; *left*: of
the time of a sample.

"""
Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | float | int | bool | None
Row: TypeAlias = dict[str, str | float]


@contextmanager
def arguments_of(known: Mapping[str, object]) -> Iterator[list[str]]:
    """Arguments of a program while the server runs that it needs, if any."""
    rate = known.get("link_mbit")
    if not isinstance(rate, int | float):
        yield []
        return
    with _far.served((sys.executable, str(FOLDER / "serve.py")), down=float(rate)) as address:
        yield [address]


def ran(command: Sequence[str], folder: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder.

    Raises:
        RuntimeError: it failed.
    """
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=env)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-400:]}")
    return done


def rate(name: str, known: Mapping[str, object]) -> float:
    """Samples per second that a program prints, without stepscope."""
    with arguments_of(known) as arguments, tempfile.TemporaryDirectory() as folder:
        done = ran([sys.executable, str(FOLDER / f"{name}.py"), *arguments], folder)
    said = json.loads(done.stdout.strip().splitlines()[-1])
    return float(said["samples"]) / float(said["seconds"])


def rates(cases: Mapping[str, Mapping[str, object]], rounds: int) -> dict[str, list[float]]:
    """The same of each program, in rounds; every other round uses the opposite order."""
    found: dict[str, list[float]] = {name: [] for name in (BASE, *cases)}
    for number in range(rounds):
        order = [BASE, *cases]
        for name in order if number % 2 == 0 else order[::-1]:
            found[name].append(rate(name, cases.get(name, {})))
            print(f"{name}: {found[name][-1]:.1f} samples/s", file=sys.stderr, flush=True)
    return found


def diagnosed(name: str, known: Mapping[str, object]) -> Row:
    """What ``stepscope run`` says first, but for what other programs on the machine take."""
    with arguments_of(known) as arguments, tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "stepscope", "run", "--quiet", "--report-json", "report.json"]
        ran([*command, str(FOLDER / f"{name}.py"), *arguments], folder)
        report = json.loads((Path(folder) / "report.json").read_text())
    found = [one for one in report["findings"] if one["severity"] != "info"]
    crowded = any(one["code"] == MACHINE for one in found)
    first = next((one for one in found if one["code"] != MACHINE), None)
    if first is None:
        return {"code": "", "title": "nothing", "stage": "", "told": "no", "crowded": crowded}
    said = " ".join((first["name"], first["title"], *(one["text"] for one in first["remedies"])))
    plain = said.lower().replace("-", " ")
    words, stages = (known.get(key) for key in ("keywords", "stages"))
    named = isinstance(words, list) and any(str(word) in plain for word in words)
    staged = isinstance(stages, list) and first["pipeline_stage"] in stages
    told = "yes" if named and staged else "no"
    return {
        "code": first["code"],
        "title": first["title"],
        "stage": first["pipeline_stage"],
        "told": told,
        "crowded": crowded,
    }


def tried(name: str, known: Mapping[str, object], wait: str, rounds: int) -> Row:
    """The trial that ``whatif`` tries first, what it leaves of the time, and what the fix leaves."""
    with arguments_of(known) as arguments, tempfile.TemporaryDirectory() as folder:
        network = ["--allow-network"] if arguments else []
        command = [sys.executable, "-m", "stepscope", "whatif", "--json", *network]
        program = [str(FOLDER / f"{name}.py"), *arguments]
        alone = ran([*command, "--time", wait, "--folder", "alone.whatif", *program], folder).stdout
        against = ["--against", str(FOLDER / f"{BASE}.py"), "--rounds", str(rounds)]
        fix = ran([*command, "--folder", "fix.whatif", *against, *program], folder).stdout
    result: Row = {
        "trial": "",
        "left": 0.0,
        "verdict": "",
        "picked": "no",
        "fix": json.loads(fix)["results"][0]["ratio"],
    }
    if alone.startswith("{"):
        results = [one for one in json.loads(alone)["results"] if one["verdict"] != "not-tried"]
        first = max(results, key=lambda one: one["expected_ratio"], default=None)
        wanted = known.get("trials")
        if first is not None and isinstance(wanted, list):
            picked = first["remedy"].partition(":")[0] in wanted
            result |= {"trial": first["remedy"], "left": first["ratio"], "verdict": first["verdict"]}
            result["picked"] = "yes" if picked else "no"
    return result


def table(cases: Mapping[str, Mapping[str, object]], rows: Mapping[str, Row], found: Mapping[str, list[float]]) -> str:
    """One line per trouble."""
    lines = [
        "| trouble | author | here | found first | whatif | left | by hand | agrees |",
        "|---|---:|---:|---|---|---:|---:|---|",
    ]
    whole = median(found[BASE]) if found.get(BASE) else 0.0
    base = rows.get(BASE, {})
    told = f"{base.get('code') or ''} {base.get('title', 'not run')}".strip()
    lines.append(f"| base: {whole:.0f} samples/s | 100 | 100 | {told} | | | | |")
    for name, known in cases.items():
        row = rows.get(name, {})
        here = f"{100 * median(found[name]) / whole:.0f}" if found.get(name) and whole else ""
        cells = (str(known["words"]), str(known["author"]), here, _finding(row), *_trial(row))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _finding(row: Row) -> str:
    if "title" not in row:
        return "not run"
    if not row["code"]:
        return f"**nothing**{' (others have the CPUs)' if row['crowded'] else ''}"
    title = str(row["title"]).replace(f"{FOLDER}/", "")
    return f"{row['code']} ({row['stage']}): {title}{'' if row['told'] == 'yes' else ' **not it**'}"


def _trial(row: Row) -> tuple[str, str, str, str]:
    if "fix" not in row:
        return "not run", "", "", ""
    left, fix = float(row["left"]), float(row["fix"])
    trial = str(row["trial"]).rpartition("/")[2] or "nothing"
    right = trial if row["picked"] == "yes" else f"{trial} **not it**"
    agrees = "yes" if left and abs(left - fix) <= AGREES * fix else "no"
    return right, f"{left:.0%}" if left else "", f"{fix:.0%}", agrees


def main() -> int:
    """Run what is missing, and print or write the page."""
    parser = argparse.ArgumentParser(description="six troubles of one network: found, and taken away by a trial?")
    parser.add_argument("--only", default="", help="names of troubles, comma-separated")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the rates; 0: none")
    parser.add_argument("--fix-rounds", type=int, default=3, help="rounds of --against")
    parser.add_argument("--time", default="3m", help="of each experiment without options")
    parser.add_argument("--no-whatif", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks/rand.md")
    options = parser.parse_args()
    cases: dict[str, dict[str, object]] = tomllib.loads((FOLDER / "cases.toml").read_text())
    if options.only:
        cases = {name: known for name, known in cases.items() if name in options.only.split(",")}
    why = _far.problem() if any("link_mbit" in known for known in cases.values()) else ""
    if why:
        print(f"network_input is left out: {why}", file=sys.stderr)
        cases = {name: known for name, known in cases.items() if "link_mbit" not in known}
    load = os.getloadavg()[0]
    state = subprocess.run(
        ["git", "rev-parse", "HEAD:src"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    kept = [json.loads(line) for line in options.results.read_text().splitlines()] if options.results.exists() else []
    rows: dict[str, Row] = {}
    for line in kept:
        if line["tree"] == state.strip():
            rows.setdefault(line["name"], {}).update(line["row"])
    options.results.parent.mkdir(parents=True, exist_ok=True)
    for name in (BASE, *cases):
        row = rows.setdefault(name, {})
        known = cases.get(name, {})
        new: Row = {} if "title" in row else diagnosed(name, known)
        if not options.no_whatif and name != BASE and "fix" not in row:
            new |= tried(name, known, options.time, options.fix_rounds)
        row |= new
        if new:
            with options.results.open("a") as stream:
                stream.write(json.dumps({"tree": state.strip(), "name": name, "row": new}) + "\n")
        print(f"{name}: {row}", file=sys.stderr, flush=True)
    found = rates(cases, options.rounds)
    text = table(cases, rows, found)
    about = (
        f"\n{os.cpu_count()} CPUs, load {load:.1f} when it began and {os.getloadavg()[0]:.1f} when it ended; "
        f"{options.rounds} rounds of the rates, medians.\n"
    )
    print(text + about)
    if options.write and not options.only:
        PAGE.write_text(HEAD + text + about)
    return 0


if __name__ == "__main__":
    sys.exit(main())
