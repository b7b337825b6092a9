"""The edits that a run suggests: the findings' in their order, then those of all else that the checker sees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.check.hits import FixSafety, Hit
from stepscope.check.registry import ALL as RULES
from stepscope.check.use_cases import check as checker
from stepscope.check.use_cases import check_fix
from stepscope.model.report.fix import FixQuestion
from stepscope.tables.errors import CheckError, UsageError
from stepscope.use_cases.fix import edits, patches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stepscope.model.report.fix import EditClass
    from stepscope.model.report.report import Report
    from stepscope.tables.findings import Finding

ASKED = frozenset({"high", "medium", "low", "ask"})
"""Severities of findings that cost enough to ask about."""
BY_CODE = {rule.code: rule for rule in RULES}
ORDER = ("error", "warning", "info")
WORTH = 1.03
"""Predicted pace over that of now from which edits of the tf.data chain are tried without a finding."""


class Candidate(Struct, frozen=True, kw_only=True):
    """An edit that may be tried."""

    code: str
    """Finding or rule."""
    title: str
    file: str
    line: int
    kind: EditClass
    texts: Mapping[str, bytes]
    """New contents of the files that it changes, by absolute path."""
    behaviour: str = ""
    """What it changes in what the program does."""

    def key(self, program: Program) -> tuple[str, ...]:
        """By what it is known again, whatever else is edited: the lines that it changes."""
        diffs = (
            patches.diff(path, program.texts[path].decode(), data.decode()) for path, data in sorted(self.texts.items())
        )
        return tuple(line for one in diffs for line in one.split("\n") if line.startswith(("+", "-")))


class Program(Struct, frozen=True, kw_only=True):
    """The program's own files, as they are with what is in the patch so far."""

    texts: Mapping[str, bytes]
    """Contents by absolute path."""
    cwd: Path
    version: str = ""
    """Version of TensorFlow that it ran with; "": unknown."""

    def path_of(self, place: str) -> str:
        """The absolute path of a file of the report."""
        return str(self.cwd / place)


def of_run(report: Report | None, program: Program) -> tuple[list[Candidate], list[FixQuestion]]:
    """The edits that a run suggests, the first to try first, and what only a person can decide.

    Args:
        report: of the run; None: there was none, and the checker alone is asked.
        program: its files.
    """
    by_rule = _hits(program)
    found: list[Candidate] = []
    questions: list[FixQuestion] = []
    chain = list(_of_chain(report, program)) if report is not None else []
    for finding in report.findings if report is not None else ():
        mine = list(_of_finding(finding, by_rule, program))
        if finding.code in edits.OF_CHAIN or INPUT_RULES & _rules(finding):
            mine += chain
        if not mine and finding.severity in ASKED:
            questions.append(_question(finding))
        found += mine
    if report is not None and report.input_bound is not None:
        found += chain if report.input_bound.best_per_s >= WORTH * report.input_bound.now_per_s else []
    found += [one for key in sorted(by_rule, key=_severity) for one in _of_rule(*key, by_rule[key], program)]
    once: dict[tuple[str, ...], Candidate] = {}
    for one in found:
        once.setdefault(one.key(program), one)
    return list(once.values()), questions


INPUT_RULES = frozenset(rule.code for rule in RULES if rule.code.startswith("TFD"))
_Hits = dict[tuple[str, str], list[Hit]]
"""Hits by rule and file."""


def _severity(key: tuple[str, str]) -> tuple[int, float, str]:
    rule = BY_CODE[key[0]]
    return ORDER.index(rule.severity), -rule.speedup, key[1]


def _hits(program: Program) -> _Hits:
    """What the checker sees in the program's files."""
    found: _Hits = {}
    for path, hits in _checked(program, program.texts).items():
        for hit in hits:
            found.setdefault((hit.code, path), []).append(hit)
    return found


def _checked(program: Program, texts: Mapping[str, bytes]) -> dict[str, list[Hit]]:
    """Hits by file, with these contents in place of those on disk."""
    paths = tuple(Path(path) for path in sorted(program.texts))
    if not paths:
        return {}
    options = checker.Options(
        paths=paths, target_version=program.version, cache=False, overlay={**program.texts, **texts}, only=tuple(texts)
    )
    try:
        done = checker.check(options)
    except (CheckError, UsageError):  # a project's settings, or a program in a session: no edit of the checker
        return {}
    return {one.path: list(one.hits) for one in done.results if not one.skipped}


def _rules(finding: Finding) -> frozenset[str]:
    """Rules that see what a finding says."""
    named = {finding.code, *finding.related_codes, *(remedy.rule for remedy in finding.remedies)}
    return frozenset(named & BY_CODE.keys())


def _of_finding(finding: Finding, by_rule: _Hits, program: Program) -> Iterator[Candidate]:
    files = {program.path_of(place.file) for place in finding.where}
    related = {rule.code for rule in RULES if finding.code in rule.related}
    for code in sorted(_rules(finding) | related, key=lambda one: one not in _rules(finding)):
        for path in sorted({path for rule, path in by_rule if rule == code} & files):
            yield from _of_rule(code, path, by_rule[code, path], program, finding.code)


def _of_rule(code: str, path: str, hits: Sequence[Hit], program: Program, finding: str = "") -> Iterator[Candidate]:
    """The fixes of a rule in a file: one edit for each class."""
    safeties: tuple[FixSafety, ...] = ("safe", "unsafe")
    for safety in safeties:
        mine = [hit for hit in hits if hit.fix is not None and hit.fix.safety == safety]
        if not mine or mine[0].fix is None:
            continue

        def again(contents: Mapping[str, bytes]) -> dict[str, list[Hit]]:
            return {one: [hit for hit in all_ if hit.code == code] for one, all_ in _checked(program, contents).items()}

        texts = check_fix.of_rule(
            path, hits, lambda one: program.texts[one], again, version=program.version, safety=safety
        )
        if not texts or not texts.keys() <= program.texts.keys():
            continue
        yield Candidate(
            code=finding or code,
            title=mine[0].fix.title if len(mine) == 1 else f"{mine[0].fix.title} ({len(mine)} places)",
            file=path,
            line=mine[0].span.line,
            kind=edits.class_of(code, mine[0].fix),
            texts=texts,
            behaviour=mine[0].fix.behaviour,
        )


def _of_chain(report: Report, program: Program) -> Iterator[Candidate]:
    """The edits of the tf.data chain, all together."""
    bound = report.input_bound
    if bound is None or not bound.diff:
        return
    texts: dict[str, bytes] = {}
    try:
        for name, hunks in patches.parts(bound.diff).items():
            path = program.path_of(name)
            if path not in program.texts:
                return
            texts[path] = patches.applied(patches.text_of(path, program.texts[path]), hunks).encode()
    except patches.RefusedError:
        return
    first = bound.edits[0]
    yield Candidate(
        code=edits.INPUT,
        title=", then ".join(edit.text for edit in bound.edits),
        file=program.path_of(first.file) if first.file else next(iter(texts)),
        line=first.line,
        kind=edits.weakest(frozenset(edits.OF_INPUT.get(edit.kind, "results") for edit in bound.edits)),
        texts=texts,
        behaviour="; ".join(edit.note for edit in bound.edits if edit.note),
    )


def _question(finding: Finding) -> FixQuestion:
    place = finding.where[0] if finding.where else None
    advice = finding.remedies[0].text if finding.remedies else "what could be done is not known"
    return FixQuestion(
        code=finding.code,
        text=f"{finding.title}. Possible here: {advice}?",
        file=place.file if place is not None else "",
        line=place.line if place is not None else 0,
    )


def to_allow(candidate: Candidate, file: str) -> FixQuestion:
    """The question whether an edit may change what it would change; ``file``: as it is shown."""
    return FixQuestion(
        code=candidate.code,
        text=f"{candidate.title}? {candidate.behaviour}".strip(),
        file=file,
        line=candidate.line,
        allow=candidate.kind,
    )
