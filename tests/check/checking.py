"""What tests of rules share: checking a text or a small project, and its expectations on the line.

A line that ends in ``# expect: TFD001`` (or several codes, with commas) must be reported with them, others must not.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Mapping

from stepscope.check.context import Engine
from stepscope.check.hits import Hit
from stepscope.check.registry import ALL
from stepscope.check.rule import Rule
from stepscope.check.run.run import check
from stepscope.check.source.modules import Project
from stepscope.check.source.versions import parse, target

EXPECT = re.compile(r"# expect: ([A-Z0-9, ]+)$")


def engine_of(files: Mapping[str, str], version: str = "2.21") -> Engine:
    """The analyses of a project of texts."""
    texts = {path: textwrap.dedent(text) for path, text in files.items()}
    readers = {path: (lambda text=text: text.encode()) for path, text in texts.items()}
    return Engine(Project(readers, ["."]), target(parse(version) or (2, 21), "test"))


def hits(files: str | Mapping[str, str], *, version: str = "2.21", rules: Iterable[Rule] = ALL) -> list[Hit]:
    """The hits in a project; a rule that fails or a file that is skipped fails the test."""
    project = {"main.py": files} if isinstance(files, str) else files
    results = check(engine_of(project, version), project, tuple(rules))
    assert [r.skipped for r in results if r.skipped] == []
    assert [f for r in results for f in r.failures] == []
    return [hit for result in results for hit in result.hits]


def codes(files: str | Mapping[str, str], *, version: str = "2.21") -> list[str]:
    """The codes that are reported, with repeats, sorted."""
    return sorted(hit.code for hit in hits(files, version=version))


def assert_expected(files: str | Mapping[str, str], *, version: str = "2.21", only: str = "") -> None:
    """Every line has exactly the codes that it expects; ``only``: other rules' codes do not matter."""
    project = {"main.py": files} if isinstance(files, str) else files
    wanted = set()
    for path, text in project.items():
        for number, line in enumerate(textwrap.dedent(text).splitlines(), 1):
            if found := EXPECT.search(line):
                wanted |= {(path, number, code.strip()) for code in found.group(1).split(",")}
    got = {(h.span.path, h.span.line, h.code) for h in hits(project, version=version) if only in ("", h.code)}
    assert sorted(got - wanted) == [], "reported, not expected"
    assert sorted(wanted - got) == [], "expected, not reported"


def examples(rule: Rule) -> tuple[str, str]:
    """The slow and the fixed program of a rule's documentation."""
    slow, fixed = re.findall(r"^```python\n(.*?)^```", rule.doc, re.DOTALL | re.MULTILINE)
    ast.parse(slow)
    ast.parse(fixed)
    return slow, fixed
