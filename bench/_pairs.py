"""Slow/fixed pairs of rules: finding them, running them, storing the results.

A pair is ``bench/rules/CODE`` with ``slow.py`` and ``fixed.py``, programs as users write them. The last line that each
prints is JSON: ``seconds`` of its steady work, ``result``, a checksum, and ``bytes`` if the pair is about memory. A
first line ``# tensorflow: 2.15`` names the required version, if that is not the newest.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
PAIRS = ROOT / "bench" / "rules"
MEASURED = PAIRS / "measured.json"
MIN_RATIO = 1.5
"""Least ratio that is worth a warning."""
SAME = 1e-4
"""Relative difference below which results count as equal: a fix may change the order of additions."""
_VERSION = re.compile(r"#\s*tensorflow:\s*([\d.]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One folder of bench/rules."""

    code: str
    slow: Path
    fixed: Path

    @property
    def version(self) -> str:
        """TensorFlow version that its programs are meant for; "" for the newest."""
        found = _VERSION.match(self.slow.read_text(encoding="utf-8"))
        return found.group(1) if found else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """Output of one run of a program."""

    seconds: float
    result: object
    bytes: float | None = None


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements of one pair, as stored in bench/rules/measured.json."""

    ratio: float
    """Slow over fixed, median of the rounds."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    runs: int
    """Number of rounds, each with one run of either program, in turn."""
    what: str
    """Measured quantity: ``seconds`` of steady work, ``CPU seconds`` of it, or ``bytes``."""
    slow: float
    """Median of the slow program, in seconds or bytes."""
    fixed: float
    tensorflow: str
    same_result: bool
    fix: str = ""
    """Kind of fix that ``--fix`` applied to the slow program: ``safe``, ``unsafe``, or "" if there is none."""
    fix_ratio: float | None = None
    """Slow over the result of ``--fix``, median."""
    fix_same_result: bool | None = None


def pairs(folder: Path = PAIRS) -> list[Pair]:
    """All pairs, by code."""
    return [
        Pair(code=path.parent.name, slow=path, fixed=path.with_name("fixed.py"))
        for path in sorted(folder.glob("*/slow.py"))
    ]


def load(path: Path = MEASURED) -> dict[str, Measured]:
    """Stored measurements by code."""
    if not path.exists():
        return {}
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Measured])


def store(measured: Mapping[str, Measured], path: Path = MEASURED) -> None:
    """Write the measurements, sorted, one line per field, so that a change reads well in a diff."""
    ordered = {code: measured[code] for code in sorted(measured)}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n")


def run(program: Path, python: str, timeout: float, environ: Mapping[str, str]) -> Ran:
    """Run a program.

    Raises:
        RuntimeError: it failed, took too long, or its last line is not what a pair prints.
    """
    try:
        done = subprocess.run(
            [python, str(program)],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env=dict(environ),
            cwd=program.parent,
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{program}: not done after {timeout:g} s") from error
    if done.returncode:
        raise RuntimeError(f"{program}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return parse(done.stdout, program)


def parse(output: str, program: Path) -> Ran:
    """The last line that a program printed."""
    lines = output.strip().splitlines()
    try:
        last = json.loads(lines[-1]) if lines else None
    except ValueError:
        last = None
    if not isinstance(last, dict) or "seconds" not in last or "result" not in last:
        raise RuntimeError(f"{program}: its last line is no JSON with seconds and result")
    return Ran(seconds=float(last["seconds"]), result=last["result"], bytes=last.get("bytes"))


def same(one: object, other: object) -> bool:
    """Whether two checksums are equal, numbers nearly so."""
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=SAME, abs_tol=SAME)
    if isinstance(one, Sequence) and isinstance(other, Sequence) and not isinstance(one, str):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return one == other


def supports(measured: Measured) -> bool:
    """Whether the pay-off is worth a warning: the ratio is large enough, and by its interval no accident."""
    return measured.ratio >= MIN_RATIO and measured.low > 1.0
