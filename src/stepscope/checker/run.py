"""Running rules over the files of a project: each file once, each failure kept to its file."""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from stepscope.checker import suppress
from stepscope.checker.context import Call, Context, Engine
from stepscope.checker.hits import Hit, Span
from stepscope.checker.modules import Module
from stepscope.checker.rule import Rule
from stepscope.checker.source import Cells
from stepscope.checker.suppress import Ignore

FRAMES = 4000
"""Recursion limit while checking: questions about long chains of values ask each other."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """What became of one file."""

    path: str
    hits: tuple[Hit, ...] = ()
    skipped: str = ""
    """Why it could not be checked; "" when it was."""
    failures: tuple[str, ...] = ()
    """Rules that failed on it, each with its error."""
    ignored: int = 0
    """Hits that comments silence."""
    unused: tuple[Ignore, ...] = ()
    """Comments that silence nothing."""
    cells: Cells = field(default_factory=Cells)
    """Of a notebook."""


@dataclass(slots=True)
class Plan:
    """Rules by what they ask to see."""

    by_word: dict[str, list[tuple[Rule, frozenset[str]]]] = field(default_factory=dict)
    """Last word of a called name, to the rules that want it; "*": rules with patterns."""
    by_node: dict[type[ast.AST], list[Rule]] = field(default_factory=dict)
    by_file: list[Rule] = field(default_factory=list)


def plan(rules: Sequence[Rule], version: tuple[int, int]) -> Plan:
    """Sort the rules that apply to a version by what they want."""
    made = Plan()
    for rule in rules:
        if not rule.applies(version):
            continue
        for name in rule.calls:
            words = made.by_word.setdefault(name.rpartition(".")[2], [])
            if all(known is not rule for known, _ in words):
                words.append((rule, rule.calls))
        for kind in rule.nodes:
            made.by_node.setdefault(kind, []).append(rule)
        if rule.on_file is not None:
            made.by_file.append(rule)
    return made


def check_file(engine: Engine, path: str, todo: Plan) -> FileResult:
    """Run rules over one file. Never raises for what the file holds."""
    module = engine.project.load(path)
    if module is None:
        return FileResult(path, skipped=engine.project.skipped.get(path, "cannot be read"))
    hits: dict[tuple[str, Span], Hit] = {}
    failures: dict[str, str] = {}
    for rule, found in _found(engine, module, todo):
        try:
            for hit in found:
                hits.setdefault((hit.code, hit.span), _quiet(engine, hit))
        except RecursionError:
            failures.setdefault(rule.code, f"{rule.code}: nested too deeply")
        except Exception as error:  # noqa: BLE001 - one of the walls (STYLE 4.4): becomes a diagnostic of the file
            failures.setdefault(rule.code, f"{rule.code}: {type(error).__name__}: {error}")
    ordered = sorted(hits.values(), key=lambda h: (h.span.line, h.span.column, h.code))
    kept, ignored, unused = suppress.split(ordered, suppress.ignores(module.source))
    return FileResult(path, kept, "", tuple(failures.values()), ignored, unused, module.source.cells)


def _quiet(engine: Engine, hit: Hit) -> Hit:
    """In tests, and through a loop of a test, it costs nobody time: an info."""
    places = (hit.span, *hit.also)
    if hit.severity == "info" or not any(engine.project.is_test(span.path) for span in places):
        return hit
    return replace(hit, severity="info")


def _found(engine: Engine, module: Module, todo: Plan) -> Iterator[tuple[Rule, Iterable[Hit]]]:
    """What each rule yields for each thing that it wants, lazily: the caller catches what it raises."""
    flow = module.flow
    contexts: dict[str, Context] = {}

    def context(rule: Rule) -> Context:
        if rule.code not in contexts:
            contexts[rule.code] = Context(engine, module, rule)
        return contexts[rule.code]

    patterns = todo.by_word.get("*", [])
    for word, calls in flow.calls.items():
        wanted = todo.by_word.get(word, []) + patterns
        for node in calls if wanted else ():
            for rule, names in wanted:
                yield rule, _call(context(rule), node, names)
    for kind, rules in todo.by_node.items():
        for statement in flow.nodes.get(kind, ()):
            for rule in rules:
                if rule.on_node is not None:
                    yield rule, rule.on_node(context(rule), statement)
    for rule in todo.by_file:
        if rule.on_file is not None:
            yield rule, rule.on_file(context(rule))


def _call(context: Context, node: ast.Call, wanted: frozenset[str]) -> Iterator[Hit]:
    for name in context.engine.names.names(context.module, node.func):
        if (name in wanted or _matches(name, wanted)) and context.rule.on_call is not None:
            yield from context.rule.on_call(context, Call(node, name))
            return


def _matches(name: str, wanted: frozenset[str]) -> bool:
    """``tensorflow.math.add`` is meant by ``tensorflow.math.*`` and by ``tensorflow.*``."""
    head = name.rpartition(".")[0]
    while head:
        if f"{head}.*" in wanted:
            return True
        head = head.rpartition(".")[0]
    return False


def check(engine: Engine, paths: Iterable[str], rules: Sequence[Rule]) -> list[FileResult]:
    """Run rules over files, in this process."""
    todo = plan(rules, engine.target.tensorflow)
    with unhindered():
        return [check_file(engine, path, todo) for path in paths]


@contextmanager
def unhindered() -> Iterator[None]:
    """Deep recursion allowed; no garbage collection, which would walk all trees again and again and free nothing."""
    limit, collecting = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(limit, FRAMES))
    gc.disable()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        if collecting:
            gc.enable()
