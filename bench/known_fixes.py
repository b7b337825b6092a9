"""Does the checker see what maintainers fixed? Judges pairs of commits before and after a performance fix.

Reads the list of public fixes (``known_fixes.csv``) and a folder of clones of these projects; checks each named file,
with its project around it, at the TensorFlow of its commit, before and after. A pair passes when a rule reports the
changed place before the fix and does not after it. Reports that maintainers rejected must stay silent. What is out of
reach is said, never guessed. With --write the table goes to docs/benchmarks/known-fixes.md.

Usage: known_fixes.py [CLONES] [--list CSV] [--only PART] [--all] [--write]; CLONES defaults to $STEPSCOPE_CLONES.
"""

from __future__ import annotations

import argparse
import ast
import csv
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import _clones
from stepscope.check.use_cases import check
from stepscope.tables.findings import Finding
from stepscope.tables.place import Place

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT.parent / "shared" / "data" / "dlperf" / "known_fixes.csv"
PAGE = ROOT / "docs" / "benchmarks" / "known-fixes.md"
SLACK = 3
"""Distance in lines within which a finding is at the changed place, as in diagnosis.py."""
GOAL = 16
FAMILIES = {"TD": "TFD", "TF": "TFF", "KP": "KER", "GR": "OPS", "VE": "VEC", "NP": "NPY"}
"""Our families by the catalogue's (docs/decisions/0009-rule-codes.md)."""
VERSIONS = {
    "akanyaani/gpt-2-tensorflow2.0@b86c851": ("2.5", "requirements.txt: tensorflow==2.5.0"),
    "titu1994/tf-TabNet@f35d964": ("2.4", "README: 2.0+; newest of its date, 2021-04"),
    "Keyird/DeepLearning-TensorFlow2@118e169": ("2.5", "README: >=2.0; newest of its date, 2021-07"),
    "tensorflow/hub@52911ce": ("2.8", "no upper bound; newest of its date, 2022-03"),
    "amansrivastava17/embedding-as-service@fe4393e": ("2.5", "server/requirements.txt: tensorflow==2.5.0"),
    "v0lta/Complex-gated-recurrent-neural-networks@e968ebe": ("1.10", "README: TensorFlow 1.10.0"),
    "matpalm/bnn@87399e5": ("1.4", "no pin; newest of its date, 2018-01"),
    "JayYip/m3tl@10f513a": ("2.3", "requirements.txt: >=1.13.1; newest of its date, 2020-08"),
    "TensorSpeech/TensorFlowTTS@864f1d0": ("2.3", "README: 2.2/2.3"),
    "TensorSpeech/TensorFlowTTS@f66396c": ("2.3", "README: 2.2/2.3"),
    "TensorSpeech/TensorFlowTTS@5991915": ("2.3", "README: 2.2/2.3"),
    "Xemnas0/NCSN-TF2.0@39dfeb4": ("2.0", "README: 2.0"),
    "N3PDF/vegasflow@15aecc4": ("2.4", "setup.py: >2.2; newest of its date, 2021-03"),
    "N3PDF/vegasflow@646ebda": ("2.0", "no pin; newest of its date, 2019-12"),
    "tensorflow/model-optimization@e538361": ("2.8", "no pin; newest of its date, 2022-05"),
    "autorope/donkeycar@8a97a7e": ("2.2", "setup.py: tensorflow==2.2.0"),
    "AllenInstitute/deepinterpolation@8a7834c": ("2.4", "requirements.txt: tensorflow==2.4.4"),
    "CompOmics/DeepLC@aece880": ("2.12", "setup.py: >=2.2,<2.13.0"),
    "OpenNMT/OpenNMT-tf@3908c2ea^": ("2.0", "its branch for 2.0, 2019-07"),
    "tensorpack/tensorpack@1a79d59": ("1.15", "workflow: 1.5.0 and 1.15.0"),
    "batzner/indrnn@67246b5": ("1.14", "requirements.txt: ~=1.5; newest of its date, 2019-08"),
    "google/qhbm-library@e4e24ca": ("2.7", "setup.py: tensorflow==2.7.0"),
    "lingxiaoli94/CWB@96bce8c": ("2.3", "README: >=2.1.0; newest of its date, 2020-11"),
}
"""TensorFlow of a commit and its source: the project's pin, else its README, else the newest of its date."""
REJECTED = {"batzner/indrnn@67246b5": frozenset({"OPS004", "TFD001"})}
"""Subject of a rejected report if other reports on the file were not rejected: indrnn's issues 24 and 25. Its issue 26,
map before batch (TFD002), came later and has no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the list."""

    repo: str
    rule: str
    before: str
    after: str
    file: str

    @property
    def kind(self) -> str:
        """Kind of line: ``pair``; ``rejected`` by the maintainers; ``open``: reported, no fix."""
        if self.rule == "NEG":
            return "rejected"
        return "pair" if self.after else "open"

    @property
    def codes(self) -> tuple[str, ...]:
        """Our codes of the catalogue's rules."""
        return tuple(FAMILIES[part[:2]] + f"0{part[2:]}" for part in self.rule.split("+")) if self.rule != "NEG" else ()

    @property
    def version(self) -> tuple[str, str]:
        """TensorFlow version and its source."""
        return VERSIONS.get(f"{self.repo}@{self.before}", ("", "newest"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Result of one line. ``passed`` is None if it was unavailable or decides nothing (open)."""

    row: Row
    passed: bool | None
    before: tuple[str, ...] = ()
    """Findings at the changed place before the fix, as ``CODE:line``."""
    after: tuple[str, ...] = ()
    note: str = ""


def rows(path: Path) -> list[Row]:
    """The list of fixes."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Row(repo=line["repo"], rule=line["rule"], before=line["before"], after=line["after"], file=line["file"])
            for line in csv.DictReader(file)
        ]


def findings(clone: _clones.Clone, commit: str, version: str) -> tuple[dict[str, list[Finding]], dict[str, str]]:
    """Findings of a commit by file, and the texts of its Python files."""
    with tempfile.TemporaryDirectory(prefix="known-fixes-") as name:
        folder = Path(name)
        clone.export(commit, folder)
        done = check.check(check.Options(paths=(folder,), target_version=version))
        by_file: dict[str, list[Finding]] = {}
        for finding in done.report.findings:
            path = Path(finding.where[0].file)
            inside = path.relative_to(folder) if path.is_absolute() else path
            by_file.setdefault(inside.as_posix(), []).append(finding)
        texts = {p.relative_to(folder).as_posix(): p.read_text(errors="replace") for p in folder.rglob("*.py")}
    return by_file, texts


def functions(text: str, changed: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The innermost functions, as first and last line, that hold changed lines."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    spans = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    found = []
    for first, number in changed:
        around = [s for s in spans if s[0] <= first and first + max(number, 1) - 1 <= s[1]]
        found += [min(around, key=lambda s: s[1] - s[0])] if around else []
    return found


def near(place: Place, spans: Sequence[tuple[int, int]], slack: int) -> bool:
    """Whether a place overlaps one of some ranges of lines, with tolerance ``slack``."""
    last = place.end_line or place.line
    return any(place.line <= end + slack and first - slack <= last for first, end in spans)


def at_place(found: Iterable[Finding], spans: Sequence[tuple[int, int]], slack: int) -> Iterator[Finding]:
    """Findings whose first place lies there; a multi-line one by its first line, which is what people see."""
    for finding in found:
        head = finding.where[0]
        if near(Place(file=head.file, line=head.line), spans, slack):
            yield finding


def names(found: Iterable[Finding]) -> tuple[str, ...]:
    """Findings as ``CODE:line``, sorted."""
    return tuple(sorted({f"{f.code}:{f.where[0].line}" for f in found}, key=lambda n: (n[:6], int(n[7:]))))


def judge_pair(clone: _clones.Clone, row: Row) -> Verdict:
    """Judge a pair: it passes if a code is at the changed lines before and not after, else in the changed function."""
    path = clone.resolve(row.before, row.file)
    hunks = clone.hunks(row.before, row.after, path)
    before, old_texts = findings(clone, row.before, row.version[0])
    after, new_texts = findings(clone, row.after, row.version[0])
    shown: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for level in ("line", "function"):
        seen: list[Finding] = []
        left: list[Finding] = []
        for file, changes in hunks.items():
            olds, news = [h.old for h in changes], [h.new for h in changes]
            if level == "line":
                old_spans = [(a, a + max(n, 1) - 1) for a, n in olds]
                new_spans = [(a, a + max(n, 1) - 1) for a, n in news]
            else:
                old_spans, new_spans = (
                    functions(old_texts.get(file, ""), olds),
                    functions(new_texts.get(file, ""), news),
                )
            slack = SLACK if level == "line" else 0
            seen += at_place(before.get(file, ()), old_spans, slack)
            left += at_place(after.get(file, ()), new_spans, slack)
        shown[level] = names(seen), names(left)
        gone = {f.code for f in seen} - {f.code for f in left}
        if gone:
            expected = sorted(gone & set(row.codes))
            note = level if expected else f"{level}, by another rule than {'+'.join(row.codes)}"
            return Verdict(row=row, passed=True, before=shown[level][0], after=shown[level][1], note=note)
    seen_names, left_names = shown["line"] if shown["line"][0] else shown["function"]
    return Verdict(
        row=row, passed=False, before=seen_names, after=left_names, note="still there" if seen_names else "silent"
    )


def judge_one(clone: _clones.Clone, row: Row) -> Verdict:
    """Judge a rejected report: nothing may be reported for the file, or for its subject. An open one is only shown."""
    path = clone.resolve(row.before, row.file)
    found, _ = findings(clone, row.before, row.version[0])
    here = found.get(path, [])
    if row.kind == "rejected":
        about = REJECTED.get(f"{row.repo}@{row.before}")
        told = [f for f in here if about is None or f.code in about]
        silent = f"silent about {', '.join(sorted(about))}" if here and about else "silent"
        return Verdict(row=row, passed=not told, before=names(here), note=silent if not told else "reported")
    expected = [f for f in here if f.code in row.codes]
    return Verdict(row=row, passed=None, before=names(expected or here), note="fires" if expected else "silent")


def judge(folder: Path | None, row: Row) -> Verdict:
    """Judge one line, or say why it is unavailable."""
    if folder is None:
        return Verdict(row=row, passed=None, note=f"skipped: no folder of clones (${_clones.VARIABLE})")
    clone = _clones.find(folder, row.repo)
    if clone is None:
        return Verdict(row=row, passed=None, note="skipped: no clone")
    absent = _clones.has(clone, [commit for commit in (row.before, row.after) if commit])
    if absent:
        return Verdict(row=row, passed=None, note=f"skipped: the clone has no {absent}")
    return judge_pair(clone, row) if row.kind == "pair" else judge_one(clone, row)


def table(verdicts: Sequence[Verdict]) -> str:
    """Shares first, then one line per row."""
    pairs = [v for v in verdicts if v.row.kind == "pair"]
    done = [v for v in pairs if v.passed is not None]
    rejected = [v for v in verdicts if v.row.kind == "rejected" and v.passed is not None]
    head = (
        f"{sum(bool(v.passed) for v in done)} of {len(done)} fix pairs seen ({len(pairs)} listed, goal {GOAL}); "
        f"{sum(bool(v.passed) for v in rejected)} of {len(rejected)} rejected reports silent."
    )
    lines = [
        head,
        "",
        "| project | commit | TensorFlow | rule | before | after | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for verdict in verdicts:
        row = verdict.row
        mark = {True: "yes", False: "no", None: "-"}[verdict.passed]
        cells = (
            row.repo,
            row.before,
            f"{row.version[0]} ({row.version[1]})",
            "+".join(row.codes) or "rejected",
            ", ".join(verdict.before) or "silent",
            (", ".join(verdict.after) or "silent") if row.kind == "pair" else "-",
            f"{mark}: {verdict.note}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Judge, print, write."""
    parser = argparse.ArgumentParser(description="judges the checker on public performance fixes")
    parser.add_argument("clones", nargs="?", type=Path, help=f"folder of clones; default ${_clones.VARIABLE}")
    parser.add_argument("--list", type=Path, default=LIST, help="known_fixes.csv")
    parser.add_argument("--only", default="", help="part of a project's name")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    if not options.list.exists():
        print(f"skipped: there is no {options.list}")
        return 0
    folder = _clones.folder_of_clones(options.clones)
    verdicts = []
    for row in rows(options.list):
        if options.only in row.repo:
            verdicts.append(judge(folder, row))
            print(f"{row.repo}: {verdicts[-1].note}", file=sys.stderr, flush=True)
    text = table(verdicts)
    print(text)
    if options.write and not options.only:
        head = (
            "# Does the checker see what maintainers fixed?\n\nPrinted by `make bench-known-fixes`. Each file is "
            "checked "
            "with its project around it, before and after the fix, at the TensorFlow of its commit. A pair counts when "
            f"a rule reports the changed lines (give or take {SLACK}), or else the changed function, before and not "
            "after."
            "\n\n"
        )
        PAGE.write_text(head + text)
    passed = sum(bool(v.passed) for v in verdicts if v.row.kind == "pair")
    return 0 if passed >= GOAL or folder is None or options.only else 1


if __name__ == "__main__":
    sys.exit(main())
