"""The names of TensorFlow, Keras and NumPy at a place in a file, and the imports to add if they are missing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from stepscope.check.fixing.edits import CannotFixError, Edit, ParserLines
from stepscope.check.source.bindings import Binding, Scope
from stepscope.check.source.canonical import canonical
from stepscope.check.source.flow import analyse

ROOTS = frozenset({"tensorflow", "keras", "numpy"})
"""First words of dotted names in a plan's arguments that are spelled as in the file."""
IMPORTS = {
    "tensorflow": ("import tensorflow as tf", "tf"),
    "keras": ("import keras", "keras"),
    "numpy": ("import numpy as np", "np"),
}
"""Import statements to add to a file without one."""
OLDER = {
    "tensorflow.data.AUTOTUNE": ((2, 4), "tensorflow.data.experimental.AUTOTUNE"),
}
"""Names that versions before the given one spelled differently."""


class Naming:
    """Names in one text.

    Args:
        text: the file's text.
        version: the TensorFlow version that names are meant for.

    Raises:
        CannotFixError: the text is not Python.
    """

    def __init__(self, text: str, version: tuple[int, int]) -> None:
        self.lines = ParserLines(text)
        self.version = version
        try:
            self.tree = ast.parse(text)
            self.flow = analyse(self.tree)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise CannotFixError(f"the file does not parse ({type(error).__name__})") from error

    def spell(self, name: str, offset: int) -> tuple[str, tuple[Edit, ...]]:
        """A qualified name as written at a place, with the edit that adds an import if needed.

        Args:
            name: ``tensorflow.data.AUTOTUNE``, ``keras.backend.clear_session``.
            offset: the place in the text.
        """
        wanted = self._of_version(name)
        found = self._known(name, wanted, offset)
        if found:
            return found, ()
        return self._imported(wanted, offset)

    def _of_version(self, name: str) -> str:
        before, older = OLDER.get(name, ((0, 0), name))
        return older if self.version < before else name

    def _known(self, name: str, wanted: str, offset: int) -> str:
        """The shortest spelling through the names bound at the place; "" if there is none."""
        spellings = []
        for local, target in self._bound(offset):
            if canonical(target) == canonical(name):
                return local
            for goal in _goals(wanted):
                rest = _rest(target, goal)
                if rest:
                    spellings.append(f"{local}{rest}")
        return min(spellings, key=lambda s: (s.count("."), len(s)), default="")

    def _bound(self, offset: int) -> Iterator[tuple[str, str]]:
        """Local names at a place that stand for modules or objects of the libraries, with what they stand for."""
        line, _ = self.lines.position(offset)
        hidden: set[str] = set()
        before: int | None = line
        for depth, scope in enumerate(self._scopes(line)):
            if depth and isinstance(scope.node, ast.ClassDef):
                continue
            for local, bindings in scope.bindings.items():
                target = "" if local in hidden else self._target(bindings, before)
                if target:
                    yield local, target
            hidden.update(scope.bindings)
            if scope.is_function:
                before = None  # the code around a function has run before it is called

    def _scopes(self, line: int) -> list[Scope]:
        """The scopes around a line, innermost first."""
        around = [
            scope
            for node, scope in self.flow.scopes.items()
            if isinstance(node, ast.Module) or _first(node) <= line <= int(getattr(node, "end_lineno", 0))
        ]
        return sorted(around, key=lambda scope: -_depth(scope))

    def _target(self, bindings: Iterable[Binding], before: int | None) -> str:
        """The object that all bindings of a name stand for; "" if they differ, or are bound only after a line."""
        targets: set[str] = set()
        bindings = tuple(bindings)
        if before is not None and all(_first(binding.node) > before for binding in bindings):
            return ""
        for binding in bindings:
            if self._typing_only(binding):
                return ""
            if binding.kind == "import":
                targets.add(binding.target)
            elif binding.kind == "assign" and isinstance(binding.value, ast.Attribute):
                targets.add(self._alias(binding.value))
            else:
                return ""
        return targets.pop() if len(targets) == 1 else _same(targets)

    def _alias(self, value: ast.Attribute) -> str:
        """The qualified name of ``tf.data.AUTOTUNE`` through the module's imports."""
        parts = []
        node: ast.expr = value
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        bound = self.flow.module.bindings.get(node.id, [])
        if len(bound) != 1 or bound[0].kind != "import":
            return ""
        return ".".join([bound[0].target, *reversed(parts)])

    def _typing_only(self, binding: Binding) -> bool:
        """Whether an import is under ``if TYPE_CHECKING``, so that it is missing at run time."""
        node: ast.AST | None = binding.node
        while node is not None:
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                return True
            node = self.flow.parents.get(node)
        return False

    # ---- new imports -----------------------------------------------------------------------------------------------

    def _imported(self, wanted: str, offset: int) -> tuple[str, tuple[Edit, ...]]:
        root, _, rest = wanted.partition(".")
        if root == "keras" and self._imports_keras_of_tensorflow():
            root, rest = "tensorflow", wanted
        statement, local = IMPORTS[root]
        if self._taken(local):
            statement, local = f"import {root}", root
            if self._taken(local):
                raise CannotFixError(f"{root} is not imported, and its usual names are taken")
        place = self._import_place()
        if place > self.lines.begin(offset):
            raise CannotFixError(f"{root} is not imported where it is needed")
        newline = self.lines.newline
        ends = place == 0 or self.lines.text[place - 1] in "\r\n"
        text = f"{statement}{newline}" if ends else f"{newline}{statement}{newline}"
        return (f"{local}.{rest}" if rest else local), (Edit(place, place, text),)

    def _taken(self, local: str) -> bool:
        """Whether a name is bound or read anywhere in the file, so that its meaning might be ambiguous."""
        return any(local in scope.bindings for scope in self.flow.scopes.values())

    def _imports_keras_of_tensorflow(self) -> bool:
        return any(
            b.kind == "import" and b.target.startswith("tensorflow.") and ".keras" in b.target
            for bindings in self.flow.module.bindings.values()
            for b in bindings
        )

    def _import_place(self) -> int:
        """The offset after the imports at the top of the file; else after its docstring, else before its first
        statement.
        """
        last: ast.stmt | None = None
        for number, statement in enumerate(self.tree.body):
            docstring = number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if not (docstring or isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass))):
                break
            if not isinstance(statement, ast.Pass):
                last = statement
        if last is None:
            first = self.tree.body[0] if self.tree.body else None
            return self.lines.offset(first.lineno, 1) if first is not None else 0
        return self.lines.after(self.lines.offset(last.end_lineno or last.lineno, 1))


def _first(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _goals(wanted: str) -> tuple[str, ...]:
    """The possible spellings of a name: Keras is a part of TensorFlow too."""
    return (wanted, f"tensorflow.{wanted}") if wanted.startswith("keras.") else (wanted,)


def _rest(target: str, goal: str) -> str:
    """The rest of a name after a module's name: ``.data.AUTOTUNE`` after ``tensorflow.compat.v1``; "" if it is not in
    the module.
    """
    for module in (target, canonical(target)):
        if goal.startswith(f"{module}."):
            return goal[len(module) :]
    return ""


def _same(targets: set[str]) -> str:
    """One of several equivalent targets: both arms of a try with an import."""
    plain = {canonical(target) for target in targets}
    return min(targets) if targets and "" not in targets and len(plain) == 1 else ""


def _depth(scope: Scope) -> int:
    depth = 0
    while scope.parent is not None:
        scope, depth = scope.parent, depth + 1
    return depth
