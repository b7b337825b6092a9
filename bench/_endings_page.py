"""Rows of the endings benchmark, where they are kept, and the page that is made of them."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from _endings_plan import KINDS, LOADS
from _endings_run import Ended
from _stats import bootstrap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_S = 0.3
"""Extra time after the last line that is allowed."""
COMPARED = ("code", "out", "err", "files")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a pair, or of a part of the plan: then only ``left`` is there."""

    sources: str
    """State of the sources that ran, as a digest."""
    ran: str = ""
    """The state that ran, if it is another one, and the pair runs nothing of what changed between the two."""
    pair: str = ""
    kind: str = ""
    words: str = ""
    framework: str = ""
    python: str = ""
    load: str = ""
    cores: int = 2
    """Cores that the pair could run on. The first rows do not say it: they had two."""
    sent: str = ""
    """Signal that was sent, and to whom."""
    without: Ended | None = None
    under: Ended | None = None
    left: tuple[str, ...] = ()
    """What is left in shared places after a part of the plan."""

    @property
    def differs(self) -> list[str]:
        """What differs in how the two runs ended."""
        return [name for name in COMPARED if getattr(self.without, name) != getattr(self.under, name)]

    @property
    def extra_s(self) -> float | None:
        """Time after the last line under stepscope less that without; None if one of them has none."""
        if self.without is None or self.under is None or self.without.extra_ns is None or self.under.extra_ns is None:
            return None
        return (self.under.extra_ns - self.without.extra_ns) / 1e9

    @property
    def remains(self) -> list[str]:
        """What is left that is not left without stepscope."""
        if self.without is None or self.under is None:
            return list(self.left)
        return [one for one in self.under.left if one not in self.without.left]

    def line(self) -> str:
        """In one line."""
        if self.without is None or self.under is None:
            return f"left after a part: {', '.join(self.left)}"
        codes = f"{self.without.code} {self.under.code}"
        extra = f"{1e3 * self.extra_s:+.0f} ms" if self.extra_s is not None else "- ms"
        cpu = f"CPU {self.without.cpu_s:.1f} {self.under.cpu_s:.1f} s, {self.under.looks} looks"
        bad = f" DIFFERS {self.differs}" if self.differs else ""
        bad += f" LEFT {self.remains}" if self.remains else ""
        where = f"{self.framework} {self.sent} {self.load} {self.python}"
        return f"{self.pair} {self.words} {where}: {codes}, {extra}, {cpu}{bad}"


class Results:
    """Rows of one state of the sources, one JSON object a line."""

    def __init__(self, path: Path, state: str) -> None:
        self._path, self._state = path, state
        self.rows = [row for row in read(path) if row.sources == state]

    def known(self) -> set[str]:
        """Names of the pairs that have been run."""
        return {row.pair for row in self.rows}

    def add(self, row: Row) -> None:
        """Keep a row."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as stream:
            stream.write(msgspec.json.encode(row) + b"\n")
        self.rows.append(row)
        print(row.line(), flush=True)

    def carry(self, state: str, wanted: Callable[[Row], bool]) -> int:
        """Take over the wanted rows of another state; their number."""
        known = self.known()
        rows = [row for row in read(self._path) if row.sources == state and row.pair not in known and wanted(row)]
        for row in rows:
            self.add(msgspec.structs.replace(row, sources=self._state, ran=row.ran or state))
        return len(rows)


def read(path: Path) -> list[Row]:
    """All rows of a file; it may have been copied together from several shards."""
    lines = path.read_bytes().splitlines() if path.exists() else ()
    return list({(row.sources, row.pair or line): row for line in lines for row in [_row(line)]}.values())


def _row(line: bytes) -> Row:
    return msgspec.json.decode(line, type=Row)


def bound(differ: int, number: int, level: float = 0.95) -> float:
    """Upper end of the one-sided interval of a share, of which ``differ`` of ``number`` were seen.

    Source: Clopper & Pearson, Biometrika 26, 1934; with none seen it is 1 - (1 - level)^(1/number).
    """
    if differ >= number:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_most(differ, number, middle) > 1 - level else (low, middle)
    return high


def _at_most(differ: int, number: int, share: float) -> float:
    """Chance of seeing ``differ`` of ``number`` or fewer."""
    term = total = (1 - share) ** number
    for seen in range(differ):
        term *= (number - seen) / (seen + 1) * share / (1 - share)
        total += term
    return total


def page(rows: Sequence[Row], before: Sequence[Row]) -> str:
    """The page's figures; ``before``: rows of a state that hangs."""
    pairs = [row for row in rows if row.pair]
    differ, left = [row for row in pairs if row.differs], [row for row in rows if row.remains]
    number = len(pairs)
    most = f"with 95 % confidence fewer than {100 * bound(len(differ), number):.2f} % of such jobs" if number else ""
    words = [f"{len(differ)} of {number} pairs differ in how they ended: {most}. {len(left)} left something."]
    alone = [row for row in differ if _odd(row, pairs) == "without"]
    if alone:
        rest = len(differ) - len(alone)
        words[0] += (
            f" In {len(alone)} of those that differ it is the run without stepscope that ended as no other run of its "
            f"program; the other {rest} are at most {100 * bound(rest, number):.2f} % of such jobs."
        )
    words += ["", *_table(pairs), ""]
    words += [
        f"- {row.line().replace(f' {row.python}', '')}{_others(row, pairs)}"
        for row in [*differ, *(row for row in left if row not in differ)]
    ]
    words += ["", _cores(sum(row.cores == 1 for row in pairs), number)]
    words += [
        "",
        f"{sum(bool(row.ran) for row in pairs)} pairs ran an earlier state, whose part in them is the same.",
    ]
    words += ["", f"By framework: {_counted(pairs, 'framework')}. By Python: {_counted_pythons(pairs)}."]
    words += ["", *_forced(pairs), *_old(before)]
    return "\n".join(words) + "\n"


def _ends(row: Row, pairs: Sequence[Row]) -> dict[str, int]:
    """How many other runs of a row's program, with and without stepscope, ended as each of its two did."""
    runs = [
        run
        for other in pairs
        if other is not row and (other.words, other.framework, other.sent) == (row.words, row.framework, row.sent)
        for run in (other.without, other.under)
    ]
    return {
        side: sum(all(getattr(run, name) == getattr(getattr(row, side), name) for name in row.differs) for run in runs)
        for side in ("without", "under")
    }


def _odd(row: Row, pairs: Sequence[Row]) -> str:
    """The side that ended as no other run of the program, where the other one ended as some did; "" if neither."""
    ends = _ends(row, pairs)
    few, many = sorted(ends, key=lambda side: ends[side])
    return few if ends[many] > ends[few] == 0 else ""


def _others(row: Row, pairs: Sequence[Row]) -> str:
    if not row.differs:
        return ""
    ends = _ends(row, pairs)
    return f" (of other runs {ends['without']} ended as the one without stepscope, {ends['under']} as the one under it)"


def _cores(single: int, number: int) -> str:
    return "Each pair had one core." if single == number else f"{single} pairs had one core, the others two."


def _table(pairs: Sequence[Row]) -> list[str]:
    extra = "extra time, free cores | full cores"
    lines = [f"| how it ends | pairs, free cores | full | differ | at most (95 %) | {extra} |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for name, kind in KINDS.items():
        some = [row for row in pairs if row.kind == name]
        if not some:
            lines.append(f"| {kind.title} | not run | | | | | |")
            continue
        loads = " | ".join(str(sum(row.load == load for row in some)) for load in LOADS)
        differ = sum(bool(row.differs) for row in some)
        share = f"{differ} | {100 * bound(differ, len(some)):.1f} %"
        extra = " | ".join(_extra([row for row in some if row.load == load]) for load in LOADS)
        lines.append(f"| {kind.title} | {loads} | {share} | {extra} |")
    return lines


def _extra(rows: Sequence[Row]) -> str:
    values = [row.extra_s for row in rows if row.extra_s is not None]
    if not values:
        return ""
    found = bootstrap(values)
    text = f"{1e3 * median(values):+.0f} ms ({1e3 * found.low:+.0f} to {1e3 * found.high:+.0f})"
    return text if found.high < MOST_S else f"**{text}**"


def _counted(rows: Sequence[Row], name: str) -> str:
    return ", ".join(f"{what} {many}" for what, many in sorted(Counter(getattr(row, name) for row in rows).items()))


def _counted_pythons(rows: Sequence[Row]) -> str:
    """Pairs by version of the interpreter."""
    versions: Counter[str] = Counter()
    for python, many in Counter(row.python for row in rows).items():
        code = "import platform; print(platform.python_version())"
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        versions[done.stdout.strip() or Path(python).name] += many
    return ", ".join(f"{version} {many}" for version, many in sorted(versions.items()))


def _forced(pairs: Sequence[Row]) -> list[str]:
    looks = [row.under.looks for row in pairs if row.kind == "forced" and row.under is not None]
    if not looks:
        return []
    return [f"Forced looks: {min(looks)} to {max(looks)} in each of {len(looks)} runs, median {median(looks):.0f}.", ""]


def _old(before: Sequence[Row]) -> list[str]:
    rows = [row for row in before if row.without is not None and row.under is not None]
    if not rows:
        return []
    hung = {side: sum(_hung(row, side) for row in rows) for side in ("without", "under")}
    state, number = rows[0].sources, len(rows)
    ended_not = f"{hung['under']} of {number} did not end under stepscope, {hung['without']} of {number} without"
    return [f"The same on sources {state}, which keep frames: {ended_not}."]


def _hung(row: Row, side: str) -> bool:
    return getattr(row, side).code is None


def estimate(rows: Sequence[Row]) -> str:
    """CPU time that a plan takes, by what its kinds have taken so far."""
    lines, total = [], 0.0
    for name, kind in KINDS.items():
        used = [row.without.cpu_s + row.under.cpu_s for row in rows if row.kind == name and row.without and row.under]
        if used:
            each = sum(used) / len(used)
            total += each * kind.pairs
            lines.append(f"{name}: {each:.1f} CPU-s a pair, {each * kind.pairs / 3600:.2f} CPU-h for {kind.pairs}")
    return "\n".join([*lines, f"all: {total / 3600:.1f} CPU-h"])


def store(path: Path, figures: str) -> None:
    """Put the figures into the page, below its words."""
    before = path.read_text("utf-8").partition("<!-- figures -->")[0] if path.exists() else ""
    path.write_text(f"{before}<!-- figures -->\n\n{figures}", "utf-8")


def as_json(rows: Sequence[Row]) -> str:
    """Rows that differ, whole."""
    return json.dumps([msgspec.to_builtins(row) for row in rows if row.differs or row.remains], indent=1)
