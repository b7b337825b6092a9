"""What does each rule's fix bring? Runs the slow/fixed pair of every rule, in turn, and keeps the measured ratio.

Prints a table and writes bench/rules/measured.json, from which `make docs` takes the ratios for docs/rules.md, and
docs/benchmarks/rules.md. Where a rule has a fix, ``stepscope check --fix`` is put to the slow program first, and the
result runs as a third program: it must have the fixed one's speed and result. A pair whose pay-off is large in each of
two rounds gets no more of them. Pairs for an older TensorFlow run with
--old-python. Ratios are of one interleaved run; the seconds belong to the machine that printed them. On a busy machine,
--cpu counts CPU time, in forks of one process that has imported TensorFlow: the page says which pairs.

Usage: rules.py [--only CODE,CODE] [--rounds N] [--old-python PYTHON] [--cpu]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import _forks
import _pairs
import _stats
from _pairs import Measured, Pair, Ran
from stepscope.check.registry import ALL

PAGE = _pairs.ROOT / "docs" / "benchmarks" / "rules.md"
OLD_PYTHON = _pairs.ROOT / ".venv-tf215" / "bin" / "python"
Run = Callable[[Path], Ran]
CLEAR = 4.0
"""Pay-off that is no accident if it occurs in each of a few rounds."""
CLEAR_ROUNDS = 2


def environ() -> dict[str, str]:
    """The user's environment, with TensorFlow quiet and the checker on the path."""
    return {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "PYTHONPATH": str(_pairs.ROOT / "src"),
    }


def tensorflow(python: str) -> str:
    """The version of TensorFlow that a Python has; "" for none."""
    code = (
        "from importlib.metadata import packages_distributions as p, version\n"
        "print(version(sorted(p()['tensorflow'])[0]))"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def apply_fix(pair: Pair, folder: Path) -> tuple[Path, str]:
    """The slow program after ``--fix``, and the kind of fix applied; "" if nothing changed."""
    before = pair.slow.read_text(encoding="utf-8")
    target = folder / f"{pair.code}.py"
    version = ["--target-version", pair.version] if pair.version else []
    for kind, words in (("safe", ["--fix"]), ("unsafe", ["--fix", "--unsafe-fixes"])):
        target.write_text(before, encoding="utf-8")
        subprocess.run(
            [
                sys.executable,
                "-m",
                "stepscope",
                "check",
                "--show-info",
                *words,
                "--select",
                pair.code,
                *version,
                str(target),
            ],
            capture_output=True,
            check=False,
            env=environ(),
        )
        if target.read_text(encoding="utf-8") != before:
            return target, kind
    return target, ""


def measure(pair: Pair, run: Run, rounds: int, version: str, *, fixable: bool, cpu: bool = False) -> Measured:
    """Run a pair, slow and fixed in turn, and then the result of ``--fix`` on slow."""
    with tempfile.TemporaryDirectory(prefix="bench-rules-") as folder:
        fixed_by_tool, kind = apply_fix(pair, Path(folder)) if fixable else (pair.slow, "")
        programs = [pair.slow, pair.fixed, *([fixed_by_tool] if kind else [])]
        ran: list[list[Ran]] = []
        while len(ran) < rounds and not _clear(ran):
            ran.append([run(program) for program in programs])
    what = "CPU seconds" if cpu else _what(ran)

    def of(one: Ran) -> float:
        return one.bytes if what == "bytes" and one.bytes is not None else one.seconds

    ratios = [of(row[0]) / max(of(row[1]), 1e-9) for row in ran]
    interval = _stats.bootstrap(ratios)
    tool = [of(row[0]) / max(of(row[2]), 1e-9) for row in ran if kind]
    return Measured(
        ratio=_round(interval.value),
        low=_round(interval.low),
        high=_round(interval.high),
        runs=len(ran),
        what=what,
        slow=_round(median(of(row[0]) for row in ran)),
        fixed=_round(median(of(row[1]) for row in ran)),
        tensorflow=version,
        same_result=all(_pairs.same(row[0].result, row[1].result) for row in ran),
        fix=kind,
        fix_ratio=_round(median(tool)) if tool else None,
        fix_same_result=all(_pairs.same(row[0].result, row[2].result) for row in ran) if kind else None,
    )


def _clear(ran: Sequence[Sequence[Ran]]) -> bool:
    """Whether more rounds are pointless: the pay-off is large in each of two."""
    return len(ran) >= CLEAR_ROUNDS and all(row[0].seconds >= CLEAR * row[1].seconds for row in ran)


def _what(ran: Sequence[Sequence[Ran]]) -> str:
    """Subject of the pair: memory if both programs print it and time alone is no reason."""
    memory = [
        row[0].bytes / max(row[1].bytes, 1.0) for row in ran if row[0].bytes is not None and row[1].bytes is not None
    ]
    time = median(row[0].seconds / max(row[1].seconds, 1e-9) for row in ran)
    worth = len(memory) == len(ran) and median(memory) >= _pairs.MIN_RATIO
    return "bytes" if worth and time < _pairs.MIN_RATIO else "seconds"


def _round(value: float) -> float:
    return float(f"{value:.3g}")


def table(measured: Mapping[str, Measured], names: Mapping[str, tuple[str, str]]) -> str:
    """The page: one line per rule."""
    worth = [code for code, one in measured.items() if _pairs.supports(one)]
    lines = [
        f"{len(measured)} pairs; {len(worth)} pay off at least {_pairs.MIN_RATIO:g} times.",
        "",
        "| rule | severity | pays off | 95 % | measured | slow | fixed | same result | --fix | runs | TensorFlow |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for code, one in measured.items():
        name, severity = names.get(code, ("", "none"))
        fix = "-"
        if one.fix:
            same = "same result" if one.fix_same_result else "other result"
            fix = f"{one.fix}: {one.fix_ratio:g} times, {same}"
        unit = "bytes" if one.what == "bytes" else "s"
        cells = (
            f"{code} {name}".strip(),
            severity,
            f"{one.ratio:g}",
            f"{one.low:g}-{one.high:g}",
            one.what,
            f"{one.slow:g} {unit}",
            f"{one.fixed:g} {unit}",
            "yes" if one.same_result else "no",
            fix,
            str(one.runs),
            one.tensorflow,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _python_of(pair: Pair, old: Path) -> tuple[str, str]:
    """The Python that a pair runs with, and its TensorFlow; ("", why) if there is none."""
    if not pair.version:
        return sys.executable, tensorflow(sys.executable)
    if not old.exists():
        return "", f"needs TensorFlow {pair.version}: give --old-python"
    version = tensorflow(str(old))
    if not version.startswith(pair.version):
        return "", f"needs TensorFlow {pair.version}, {old} has {version or 'none'}"
    return str(old), version


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="measures the slow/fixed pair of every rule")
    parser.add_argument("--only", default="", help="codes or their beginnings, comma-separated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds a program may take")
    parser.add_argument("--old-python", type=Path, default=OLD_PYTHON, help="a Python with an older TensorFlow")
    parser.add_argument("--no-fix", action="store_true", help="do not try --fix")
    parser.add_argument("--cpu", action="store_true", help="for a busy machine: CPU time, in forks of one process")
    options = parser.parse_args(words)
    wanted = tuple(part for part in options.only.split(",") if part)
    chosen = [pair for pair in _pairs.pairs() if not wanted or pair.code.startswith(wanted)]
    if not chosen:
        parser.error("no pair matches")
    measured = _pairs.load()
    failed = 0
    quiet = environ()
    if options.cpu:
        chosen = [pair for pair in chosen if not pair.version and pair.code not in _forks.UNFIT]
        _forks.prepare(quiet)
    for pair in chosen:
        python, version = _python_of(pair, options.old_python)
        if not python:
            print(f"{pair.code}: skipped: {version}", file=sys.stderr, flush=True)
            continue

        def run(program: Path, python: str = python) -> Ran:
            if options.cpu:
                return _forks.run(program, options.timeout)
            return _pairs.run(program, python, options.timeout, quiet)

        try:
            one = measure(pair, run, options.rounds, version, fixable=not options.no_fix, cpu=options.cpu)
        except RuntimeError as error:
            failed += 1
            print(f"{pair.code}: {error}", file=sys.stderr, flush=True)
            continue
        measured[pair.code] = one
        _pairs.store(measured)
        print(f"{pair.code}: {one.ratio:g} ({one.low:g}-{one.high:g}) {one.what}", file=sys.stderr, flush=True)
    write(measured)
    return 1 if failed else 0


def write(measured: Mapping[str, Measured]) -> None:
    """Print the table, and write the page."""
    known = {pair.code for pair in _pairs.pairs()}
    kept = {code: one for code, one in sorted(measured.items()) if code in known}
    _pairs.store(kept)
    text = table(kept, {rule.code: (rule.name, rule.severity) for rule in ALL})
    print(text)
    head = (
        "# What does a rule's fix bring?\n\nPrinted by `make bench-rules`: the slow and the fixed program of each rule "
        "([bench/rules](../../bench/rules/README.md)), in turn. A ratio is the median over the rounds, with its "
        "bootstrap interval. CPU seconds: measured with `--cpu` on a busy machine.\n\n"
    )
    PAGE.write_text(head + text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
