"""Running rules over the files of a project: each file once, each failure confined to its file."""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct, field

from stepscope.check.context import Answers, Call, Context, Engine
from stepscope.check.hits import Hit, Span
from stepscope.check.inference.memo import OutOfTimeError
from stepscope.check.rule import Rule
from stepscope.check.run.plan import Plan
from stepscope.check.source import suppress
from stepscope.check.source.modules import Module
from stepscope.check.source.notebook import LeftOut
from stepscope.check.source.source import Cells
from stepscope.check.source.suppress import Ignore

FRAMES = 4000
"""Recursion limit while checking: questions about long chains of values ask each other."""


BOX_S = 10.0
"""CPU time limit for one file; ordinary files take a hundredth of a second."""


class _Wall:
    """One of the walls: an exception raised inside becomes a diagnostic of the file."""

    __slots__ = ("failures", "who")

    def __init__(self, failures: dict[str, str], who: str) -> None:
        self.failures = failures
        self.who = who

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Keep the first error of each rule."""
        if not isinstance(error, Exception) or isinstance(error, OutOfTimeError):
            return False
        text = "nested too deeply" if isinstance(error, RecursionError) else f"{type(error).__name__}: {error}"
        self.failures.setdefault(self.who, f"{self.who}: {text}")
        return True


class FileResult(Struct, frozen=True):
    """The result of checking one file."""

    path: str
    hits: tuple[Hit, ...] = ()
    skipped: str = ""
    """Reason why the file could not be checked; "" if it was."""
    failures: tuple[str, ...] = ()
    """Rules that failed on the file, each with its error."""
    ignored: int = 0
    """Number of hits silenced by comments."""
    unused: tuple[Ignore, ...] = ()
    """Comments that silence nothing."""
    analysed: bool = True
    """Flag: false if no rule can concern the code: no package that rules know reaches it."""
    cells: Cells = field(default_factory=Cells)
    """Cells of a notebook."""
    named: tuple[tuple[int, str], ...] = ()
    """Line and code of each code that a comment silences."""
    left_out: tuple[LeftOut, ...] = ()
    """Cells of a notebook that are not Python; the others were checked."""


def check_file(engine: Engine, path: str, todo: Plan) -> FileResult:
    """Run rules over one file. Never raises because of the file's content."""
    project = engine.project
    source = project.source(path)
    module = project.load(path) if source is not None and project.concerned(path) else None
    if source is None or path in project.skipped:
        return FileResult(path, skipped=project.skipped.get(path, "cannot be read"))
    hits: dict[tuple[str, Span], Hit] = {}
    failures: dict[str, str] = {}
    questions = engine.inference.questions
    questions.until = time.process_time() + BOX_S
    try:
        for who, found in _asked(engine, module, todo, failures) if module is not None else ():
            with _Wall(failures, who):
                for hit in found:
                    hits.setdefault((hit.code, hit.span), hit)
            if who in failures:
                questions.forget()
            questions.count()
    except OutOfTimeError:
        questions.forget()
        failures["time"] = f"stopped after {BOX_S:g} s of CPU time; findings up to then are reported"
    finally:
        questions.until = math.inf
    ordered = sorted(hits.values(), key=lambda h: (h.span.line, h.span.column, h.code))
    comments = suppress.ignores(source, todo.codes)
    kept, ignored, unused = suppress.split(ordered, comments)
    named = tuple((comment.line, code) for comment in comments for code in comment.codes)
    unknown = module is None and bool(source.text.strip())
    return FileResult(
        path, kept, "", tuple(failures.values()), ignored, unused, not unknown, source.cells, named, source.left_out
    )


def _asked(engine: Engine, module: Module, todo: Plan, failures: dict[str, str]) -> Iterator[tuple[str, Iterable[Hit]]]:
    """The results of each rule for each thing it wants, with the rule's code; lazy, so that the caller catches
    exceptions.
    """
    contexts: dict[str, Context] = {}
    answers: Answers = {}

    def context(rule: Rule) -> Context:
        if rule.code not in contexts:
            contexts[rule.code] = Context(engine, module, rule, answers)
        return contexts[rule.code]

    for call in todo.calls(engine.project, module):
        names: tuple[str, ...] = ()
        with _Wall(failures, "names"):
            names = engine.names.names(module, call.func)
        done: set[str] = set()
        for name in names:
            for rule in todo.wanting(name):
                if rule.on_call is not None and rule.code not in done:
                    done.add(rule.code)
                    yield rule.code, rule.on_call(context(rule), Call(call, name))
    for rule, asked in todo.nodes:
        if rule.concerns(module.source.text):
            at = context(rule)
            for kind in rule.nodes:
                for node in module.flow.nodes.get(kind, ()):
                    yield rule.code, asked(at, node)
    for rule, told in todo.files:
        if rule.concerns(module.source.text):
            yield rule.code, told(context(rule))


def check(engine: Engine, paths: Iterable[str], rules: Sequence[Rule]) -> list[FileResult]:
    """Run rules over files, in this process."""
    todo = Plan(rules, engine.target.tensorflow)
    with unhindered():
        return [check_file(engine, path, todo) for path in paths]


@contextmanager
def unhindered() -> Iterator[None]:
    """Allow deep recursion and stop garbage collection, which would walk all trees repeatedly and free nothing."""
    limit, collecting = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(limit, FRAMES))
    gc.disable()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        if collecting:
            gc.enable()
