"""The context of a rule: one file, and questions about it. Rules use nothing of the engine but this and ``rule``.

Every answer may be "not known" (``""``, ``()``, ``None``, ``Tag.UNKNOWN``); a rule reports only what is known.
Questions about nodes of other files (a function that a chain runs) go to ``ctx.at(module)``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from stepscope.check.hits import CheckSeverity, Excess, FixPlan, FixSafety, Hit, Span
from stepscope.check.inference.datasets import Chain, DatasetAnalysis, Stage
from stepscope.check.inference.effects import Effect, Effects
from stepscope.check.inference.infer import Inference
from stepscope.check.inference.loops import Loop, Loops
from stepscope.check.inference.names import Function, Thing
from stepscope.check.inference.relevance import Relevance
from stepscope.check.inference.tags import Class, Tag, Value
from stepscope.check.inference.tracing import Tracing
from stepscope.check.inference.values import passed
from stepscope.check.source.modules import Module, Project
from stepscope.check.source.syntax import argument
from stepscope.check.source.versions import Target

if TYPE_CHECKING:
    from stepscope.check.source.bindings import Binding, LoopNode


T = TypeVar("T")


class Asking(Protocol):
    """Interface of the rule that asks (``check.rule.Rule``)."""

    @property
    def code(self) -> str:
        """Code of the rule's hits."""

    @property
    def severity(self) -> CheckSeverity:
        """Severity of hits that state none."""


Answers = dict[Callable[["Context"], object], object]
"""Answers about a file, by the function that computes each."""


class Engine:
    """The analyses of a project, shared by all its files.

    Args:
        project: the modules.
        target: the versions to check for.
    """

    def __init__(self, project: Project, target: Target) -> None:
        self.project = project
        self.target = target
        self.inference = Inference(project)
        self.names = self.inference.names
        self.loops = Loops(self.inference)
        self.tracing = Tracing(self.inference)
        self.effects = Effects(self.inference)
        self.chains = DatasetAnalysis(self.inference)
        self.relevance = Relevance(self.loops, self.tracing, self.chains)


class Call(Struct, frozen=True):
    """A call, with the qualified name of the called object."""

    node: ast.Call
    name: str
    """``tensorflow.data.Dataset.map``, ``keras.Model.predict``, ``tensorflow.random.uniform``, ``project.train``."""

    @property
    def word(self) -> str:
        """The name's last part: ``map``."""
        return self.name.rpartition(".")[2]

    @property
    def receiver(self) -> ast.expr | None:
        """The object a method is called on: ``ds`` in ``ds.map(f)``."""
        return self.node.func.value if isinstance(self.node.func, ast.Attribute) else None

    @property
    def opaque(self) -> bool:
        """Whether ``*args`` or ``**kwargs`` hide arguments, so that one that is not visible may be given."""
        return any(k.arg is None for k in self.node.keywords) or any(isinstance(a, ast.Starred) for a in self.node.args)

    def argument(self, index: int, keyword: str) -> ast.expr | None:
        """An argument by position or keyword; None if it is not given. An index of -1 means keyword only."""
        return argument(self.node, index, keyword)


class Context:
    """One file and its rule. The runner makes one for each rule and file.

    Args:
        engine: the project's analyses.
        module: the file.
        rule: the rule that asks; its code and severity are what ``hit`` reports.
        answers: cache of ``once``, shared by the rules of a file.
    """

    def __init__(self, engine: Engine, module: Module, rule: Asking, answers: Answers | None = None) -> None:
        self.engine = engine
        self.module = module
        self.rule = rule
        self._answers: Answers = {} if answers is None else answers

    @property
    def functions(self) -> Functions:
        """Questions about functions, classes and calls."""
        return Functions(self)

    @property
    def loops(self) -> Repetition:
        """Questions about loops."""
        return Repetition(self)

    @property
    def places(self) -> Places:
        """Questions about the positions of nodes."""
        return Places(self)

    @property
    def target(self) -> Target:
        """The versions to check for: ``ctx.target.tensorflow >= (2, 12)``, ``ctx.target.keras``."""
        return self.engine.target

    def once(self, answer: Callable[[Context], T]) -> T:
        """An answer about the whole file, computed once for all rules."""
        if answer not in self._answers:
            self._answers[answer] = answer(self)
        return cast("T", self._answers[answer])

    def at(self, module: Module) -> Context:
        """The same questions about another file of the project."""
        return self if module is self.module else Context(self.engine, module, self.rule)

    def name(self, expr: ast.expr) -> str:
        """The qualified name of the object an expression stands for; "" if unknown."""
        return self.engine.names.name(self.module, expr)

    def names(self, expr: ast.expr) -> tuple[str, ...]:
        """Every library name that an expression may stand for; project names are omitted."""
        return self.engine.names.names(self.module, expr)

    def things(self, expr: ast.expr) -> tuple[Thing, ...]:
        """Everything an expression may stand for: library names, and the project's Functions, Classes and Modules."""
        return self.engine.names.things(self.module, expr)

    def call(self, node: ast.Call) -> Call:
        """A call with its name; "" if unknown."""
        return Call(node, self.name(node.func))

    def calls(self, *words: str) -> Iterable[Call]:
        """The file's calls by the last word of the called name: ``ctx.calls("map", "batch")``."""
        for word in words:
            for node in self.module.flow.calls.get(word, ()):
                yield self.call(node)

    def value(self, expr: ast.expr) -> Value:
        """What is known about an expression's value: tag, container or not, class."""
        return self.engine.inference.value(self.module, expr)

    def tag(self, expr: ast.expr) -> Tag:
        """The tag of an expression; UNKNOWN for containers, which ``value`` describes."""
        value = self.value(expr)
        return Tag.UNKNOWN if value.many else value.tag

    def definitions(self, name: ast.Name) -> tuple[Binding, ...]:
        """The bindings that may reach a name where it is read; flow-aware."""
        return self.engine.names.reaching(self.module, name)

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The parent of a node."""
        return self.module.parent(node)

    def function(self, expr: ast.expr) -> Function | None:
        """The project function an expression stands for: def, lambda, method, partial, or a tf.function of one."""
        return self.engine.chains.callable(self.module, expr)

    def enclosing(self, node: ast.AST) -> Function | None:
        """The innermost function around a node."""
        return self.engine.tracing.enclosing(self.module, node)

    def traced(self, node: ast.AST) -> bool:
        """Whether a node runs while a graph is traced: in a tf.function, a map function or a Keras step."""
        return self.engine.tracing.traced(self.module, node)

    def chains(self, expr: ast.expr) -> tuple[Chain, ...]:
        """The possible constructions of an expression's Dataset, each from its source to its last stage."""
        return self.engine.chains.of(self.module, expr)

    def text(self, node: ast.AST, limit: int = 60) -> str:
        """The source of a node on one line, for messages."""
        text = " ".join(ast.unparse(node).split())
        return text if len(text) <= limit else f"{text[: limit - 1]}…"

    def hit(
        self,
        node: ast.AST,
        message: str,
        *,
        confidence: float = 0.9,
        severity: CheckSeverity | None = None,
        fix: FixPlan | None = None,
        also: Iterable[Span] = (),
        excess: Excess | None = None,
    ) -> Hit:
        """A report at a node of this file; the rule's severity is the default, and info where the node runs rarely."""
        spans = tuple(also)
        return Hit(
            code=self.rule.code, span=self.places.place(node), message=message, confidence=confidence,
            severity=severity or self.rule.severity, fix=fix, also=spans, excess=excess,
            often=self.engine.relevance.of(self.module, node, spans, self.rule.code),
        )  # fmt: skip

    def fix(
        self,
        action: str,
        title: str,
        *nodes: ast.AST,
        safety: FixSafety,
        behaviour: str,
        parts: Iterable[FixPlan] = (),
        **arguments: str,
    ) -> FixPlan:
        """A plan for the fixer: the action, its nodes in this file, and the change in behaviour.

        ``parts``: further plans that belong to it. Actions and their arguments: docs/writing-rules.md.
        """
        spans = tuple(self.places.span(node) for node in nodes)
        return FixPlan(
            action=action, title=title, safety=safety, behaviour=behaviour, spans=spans,
            arguments=tuple(sorted(arguments.items())), parts=tuple(parts),
        )  # fmt: skip


class Functions:
    """Questions about the project's functions, classes and their calls."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def callees(self, node: ast.Call) -> tuple[Function, ...]:
        """The project functions that a call may run."""
        return self._context.engine.inference.callee(self._context.module, node)

    def callers(self, function: Function) -> tuple[tuple[Module, ast.Call], ...]:
        """The project's calls of a function."""
        return self._context.engine.inference.callers(function)

    def given(self, function: Function, name: str) -> list[tuple[Context, ast.expr | None]]:
        """The arguments that the project's calls of a function pass to a parameter; None: the default, or hidden."""
        return [(self._context.at(module), passed(call, function, name)) for module, call in self.callers(function)]

    def methods(self, cls: Class, name: str) -> list[Function]:
        """A class's methods of a name, including inherited ones."""
        return self._context.engine.inference.methods(cls, name)

    def lineage(self, cls: Class) -> Iterable[str]:
        """Qualified names of a class and all its ancestors."""
        return self._context.engine.names.lineage(cls)

    def effects(self, function: Function) -> tuple[Effect, ...]:
        """What makes a function stateful for tf.data; empty if nothing is known to."""
        return self._context.engine.effects.of(function)

    def vectorisable(self, function: Function) -> bool | None:
        """Whether a function gives the same result on a batch as on its elements. None: unknown."""
        return self._context.engine.effects.vectorisable(function)

    def elementwise(self, function: Function, given: Mapping[ast.expr, str]) -> bool:
        """Whether a function works on a batch if the given expressions of its body do (a parse of the element)."""
        return self._context.engine.effects.elementwise.of(function, given)

    def called(self, function: Function, levels: int = 2) -> frozenset[str]:
        """Names of what a function calls, itself and through project functions; contains "" if one is unknown."""
        return frozenset(
            call.name for _, call in self._context.at(function.module).functions.calls_below(function.body, levels)
        )

    def graph_decorator(self, function: Function) -> ast.expr | None:
        """The ``@tf.function`` of a function."""
        return self._context.engine.inference.graph_decorator(function)

    def calls_below(self, nodes: Iterable[ast.AST], levels: int = 2) -> Iterator[tuple[Context, Call]]:
        """Yield every call below nodes of this file, and below the bodies of the project functions they call.

        Each call comes with the context of its own file. Bodies of functions that are only defined are omitted.
        """
        seen: set[ast.AST] = set()
        todo: list[tuple[Context, Iterable[ast.AST], int]] = [(self._context, nodes, levels)]
        for at, some, left in todo:  # it grows: the nearest first, so that each body is reached with most levels left
            for node in (call for part in some for call in at.module.calls_in(part)):
                yield at, at.call(node)
                for function in at.functions.callees(node) if left else ():
                    if function.node not in seen:
                        seen.add(function.node)
                        todo.append((at.at(function.module), function.body, left - 1))

    def of_stage(self, stage: Stage) -> Function | None:
        """The project function that a stage runs."""
        return self._context.engine.chains.function(stage)


class Repetition:
    """Questions about loops, and how often they run."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def around(self, node: ast.AST, *, calls: bool = True) -> tuple[Loop, ...]:
        """The loops that repeat a node, innermost first; with ``calls`` also those around the project's callers."""
        return self._context.engine.loops.around(self._context.module, node, calls=calls)

    def varies(self, expr: ast.expr, loop: Loop | LoopNode) -> bool | None:
        """Whether an expression of this file differs between iterations of a loop around it.

        Unknown for a loop reached through calls; ask about the argument in ``loop.via`` instead.
        """
        if isinstance(loop, Loop):
            return None if loop.via else self._context.engine.loops.varies(self._context.module, expr, loop.node)
        return self._context.engine.loops.varies(self._context.module, expr, loop)

    def inside(self, node: ast.AST, loop: Loop | LoopNode) -> bool:
        """Whether a node of this file is inside a loop, including the loop's targets."""
        return self._context.engine.loops.within(
            self._context.module, node, loop.node if isinstance(loop, Loop) else loop
        )

    def integer(self, expr: ast.expr | None) -> int | None:
        """An integer literal, followed through names."""
        return self._context.engine.loops.integer(self._context.module, expr) if expr is not None else None

    def length(self, expr: ast.expr) -> int | None:
        """The number of elements of an iterable, if the source states it."""
        return self._context.engine.loops.length(self._context.module, expr)


class Places:
    """Positions of the nodes of a file."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def span(self, node: ast.AST) -> Span:
        """The span of a node of this file."""
        source = self._context.module.source
        line = int(getattr(node, "lineno", 1))
        end = int(getattr(node, "end_lineno", None) or line)
        return Span(
            path=self._context.module.path,
            line=line,
            column=source.column(line, getattr(node, "col_offset", 0)),
            end_line=end,
            end_column=source.column(end, int(getattr(node, "end_col_offset", None) or 0)),
            function=self._context.module.scope_of(node).name,
        )

    def place(self, node: ast.AST) -> Span:
        """The span a hit points to: in a chain of calls it begins at the method's own name."""
        whole = self.span(node)
        func = node.func if isinstance(node, ast.Call) else None
        if not isinstance(func, ast.Attribute):
            return whole
        line = func.end_lineno or whole.line
        if line == whole.line and not isinstance(func.value, ast.Call):
            return whole
        column = self._context.module.source.column(line, (func.end_col_offset or 0) - len(func.attr.encode()))
        return replace(whole, line=line, column=column)

    def loop_span(self, loop: Loop) -> Span:
        """The span of a loop's head, which may be in another file."""
        context = self._context.at(loop.module)
        whole = context.places.span(loop.node)
        if loop.is_comprehension:
            return whole
        lines = context.module.source.lines
        end = len(lines[whole.line - 1]) + 1 if whole.line <= len(lines) else whole.column
        return Span(
            path=whole.path, line=whole.line, column=whole.column, end_line=whole.line, end_column=end,
            function=whole.function,
        )  # fmt: skip
