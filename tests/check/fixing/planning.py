"""What tests of fixes share: a plan on nodes that are named by their source, and doing it."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Mapping

from stepscope.check.context import Engine
from stepscope.check.fixing.edits import apply
from stepscope.check.fixing.fixer import Fixer
from stepscope.check.fixing.rounds import Outcome, fix
from stepscope.check.hits import FixPlan, Hit, Span
from stepscope.check.registry import ALL
from stepscope.check.rule import Rule
from stepscope.check.run.run import check
from stepscope.check.source.modules import Project
from stepscope.check.source.source import Source, read
from stepscope.check.source.versions import parse, target


def span_of(source: Source, snippet: str) -> Span:
    """The span of the outermost node whose source is ``snippet``, or whose source begins with it (``for x in y:``)."""
    for node in ast.walk(source.tree):
        if not isinstance(node, (ast.expr, ast.stmt)):
            continue
        text = ast.get_source_segment(source.text, node) or ""
        if text == snippet or (snippet.endswith(":") and text.startswith(snippet)):
            return Span(
                path=source.path,
                line=node.lineno,
                column=source.column(node.lineno, node.col_offset),
                end_line=node.end_lineno or 0,
                end_column=source.column(node.end_lineno or 0, node.end_col_offset or 0),
            )
    raise AssertionError(f"no node is {snippet!r}")


def plan(text: str, action: str, *snippets: str, parts: tuple[FixPlan, ...] = (), **arguments: str) -> FixPlan:
    """A plan of an action on the nodes with these sources."""
    source = read("main.py", text.encode())
    return FixPlan(
        action=action,
        title=action,
        safety="safe",
        behaviour="",
        spans=tuple(span_of(source, snippet) for snippet in snippets),
        arguments=tuple(sorted(arguments.items())),
        parts=parts,
    )


def fixed(text: str, action: str, *snippets: str, version: tuple[int, int] = (2, 21), **arguments: str) -> str:
    """A dedented text after an action; "refused: ..." where it cannot be done."""
    text = textwrap.dedent(text)
    done = Fixer(text, version).plan(plan(text, action, *snippets, parts=(), **arguments))
    return f"refused: {done.refused}" if done.refused else apply(text, done.edits)


def hits_of(files: Mapping[str, bytes], version: str = "2.21", rules: Iterable[Rule] = ALL) -> dict[str, list[Hit]]:
    """What the rules find in files; those that cannot be checked are not in the answer."""
    readers = {path: (lambda data=data: data) for path, data in files.items()}
    engine = Engine(Project(readers, ["."]), target(parse(version) or (2, 21), "test"))
    results = check(engine, files, tuple(rules))
    assert [f for r in results for f in r.failures] == []
    return {r.path: list(r.hits) for r in results if not r.skipped}


def fix_files(
    files: Mapping[str, bytes], *, version: str = "2.21", rules: Iterable[Rule] = ALL, unsafe: bool = True
) -> Outcome:
    """Everything that ``--fix`` does to files; with ``unsafe`` what ``--unsafe-fixes`` does as well."""
    return fix(
        hits_of(files, version, rules),
        files.__getitem__,
        lambda changed: hits_of({**files, **changed}, version, rules),
        version=parse(version) or (2, 21),
        allowed=("safe", "unsafe") if unsafe else ("safe",),
    )


def fixed_by(text: str, code: str, *, version: str = "2.21", unsafe: bool = True, path: str = "main.py") -> str:
    """A text after the fixes of one rule, which must be silent on it then and leave it alone."""
    rules = [rule for rule in ALL if rule.code == code]
    first = {path: textwrap.dedent(text).encode()}
    outcome = fix_files(first, version=version, rules=rules, unsafe=unsafe)
    assert [(f.hit.span.line, f.refused) for f in outcome.refused] == [], "not fixed"
    after = {**first, **outcome.contents}
    assert hits_of(after, version, rules) == {path: []}, "still reported"
    return after[path].decode()
