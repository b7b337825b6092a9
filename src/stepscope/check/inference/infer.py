"""Inference of values: tags of expressions, through names, attributes of self, project calls and arguments."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from stepscope.check.inference import signatures as sig
from stepscope.check.inference.memo import Memo, Questions
from stepscope.check.inference.names import Function, NameResolver, flat
from stepscope.check.inference.options import option
from stepscope.check.inference.tags import UNKNOWN_VALUE, Class, Tag, Value, join
from stepscope.check.inference.values import arithmetic, assigned_names, at, branches, is_static, many, passed, true
from stepscope.check.source.bindings import Binding
from stepscope.check.source.modules import Module, Project
from stepscope.check.source.syntax import default, last_word

MAX_ELEMENTS = 16
"""Number of elements of a literal that are examined one by one."""
MAX_CANDIDATES = 400
"""Number of calls that may be of a function, by name and file; above it nothing is inferred."""
MAX_CALLERS = 32
"""Number of call sites examined for a parameter's value; functions with more are utilities."""
_BUILTIN = frozenset(vars(builtins))
_SEVERAL = (ast.Tuple, ast.List, ast.Dict, ast.ListComp)
_CONSTANTS: tuple[tuple[type, Value], ...] = (
    (bool, sig.BOOL),
    (int, sig.SCALAR),
    (float, sig.SCALAR),
    (complex, sig.SCALAR),
    (str, sig.STRING),
    (bytes, sig.STRING),
    (type(None), sig.NONE),
)


class Inference:
    """Inference of expressions; every answer is cached.

    Args:
        project: the modules.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.questions = questions = Questions()
        self.names = NameResolver(project, self.value, questions)
        self._values: Memo[ast.expr, Value] = Memo(questions, UNKNOWN_VALUE, self._value)
        self._returned: Memo[ast.AST, Value] = Memo(questions, UNKNOWN_VALUE, self._result)
        self._bound: Memo[Binding, Value] = Memo(questions, UNKNOWN_VALUE, self._binding)
        self._called: Memo[ast.AST, tuple[tuple[Module, ast.Call], ...]] = Memo(questions, (), self._find_callers)

    def value(self, module: Module, expr: ast.expr) -> Value:
        """What is known about an expression's value; nothing while it is being determined."""
        found = self._values.kept.get(expr)
        return found if found is not None else self._values.get(expr, module, expr)

    def _value(self, module: Module, expr: ast.expr) -> Value:
        if isinstance(expr, ast.Constant):
            return next((value for kind, value in _CONSTANTS if isinstance(expr.value, kind)), UNKNOWN_VALUE)
        if isinstance(expr, ast.Name):
            return join(self.binding(module, b) for b in self.names.reaching(module, expr))
        if isinstance(expr, ast.Call):
            return self._call(module, expr)
        if isinstance(expr, ast.Attribute):
            return self._attribute(module, expr)
        if isinstance(expr, ast.BinOp):
            return arithmetic(expr.op, self.value(module, expr.left), self.value(module, expr.right))
        if isinstance(expr, ast.UnaryOp):
            inner = self.value(module, expr.operand)
            return sig.BOOL if isinstance(expr.op, ast.Not) else Value(inner.tag, kind=inner.kind)
        if isinstance(expr, ast.Compare):
            sides = [self.value(module, side) for side in (expr.left, *expr.comparators)]
            return next((s for s in sides if s.tag in (Tag.TENSOR, Tag.NUMPY)), sig.BOOL)
        if isinstance(expr, ast.BoolOp):
            return join(self.value(module, side) for side in expr.values)
        if isinstance(expr, ast.IfExp):
            return join((self.value(module, expr.body), self.value(module, expr.orelse)))
        if isinstance(expr, ast.JoinedStr):
            return sig.STRING
        if isinstance(expr, (ast.Tuple, ast.List)):
            return self._literal(module, expr.elts)
        if isinstance(expr, ast.Set):
            return many(join(self.value(module, e) for e in expr.elts))
        if isinstance(expr, ast.Dict):
            return many(join(self.value(module, e) for e in expr.values))
        if isinstance(expr, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return many(self.value(module, expr.elt))
        if isinstance(expr, ast.Subscript):
            return self._subscript(module, expr)
        if isinstance(expr, (ast.NamedExpr, ast.Starred, ast.Await)):
            return self.value(module, expr.value)
        return UNKNOWN_VALUE

    def _literal(self, module: Module, elements: Sequence[ast.expr]) -> Value:
        if any(isinstance(e, ast.Starred) for e in elements) or len(elements) > MAX_ELEMENTS:
            return many(join(self.value(module, e) for e in elements[:MAX_ELEMENTS]))
        parts = tuple(self.value(module, e) for e in elements)
        whole = join(parts)
        same = bool(parts) and all(part == whole for part in parts)
        return Value(whole.tag, many=True, kind=whole.kind, cls=whole.cls, parts=parts) if same else Value(parts=parts)

    def _subscript(self, module: Module, expr: ast.Subscript) -> Value:
        base = self.value(module, expr.value)
        index = expr.slice.value if isinstance(expr.slice, ast.Constant) else None
        if isinstance(expr.slice, ast.Slice) and (base.many or base.tag is Tag.PY_STRING):
            return Value(base.tag, many=base.many, kind=base.kind, cls=base.cls)
        return base.element(index if isinstance(index, int) else None)

    # ---- bindings ------------------------------------------------------------------------------------------------

    def binding(self, module: Module, binding: Binding) -> Value:
        """The value that a binding gives its name."""
        found = self._bound.kept.get(binding)
        return found if found is not None else self._bound.get(binding, module, binding)

    def _binding(self, module: Module, binding: Binding) -> Value:
        kind, value = binding.kind, binding.value
        if kind in ("assign", "unpack", "with") and value is not None:
            if binding.annotation is not None and (said := self.annotation(module, binding.annotation)).known:
                return said
            return at(self.value(module, value), binding.path)
        if kind == "element" and value is not None:
            return at(self.element(module, value, binding.path), ())
        if kind == "aug" and value is not None:
            before = join(self.binding(module, b) for b in flat(binding.sources))
            after = self.value(module, value)
            return before if before.many else arithmetic(ast.Add(), before, after)
        if kind == "param":
            return self.parameter(module, binding)
        if kind in ("import", "def", "class"):
            return self._thing(module, binding)
        return UNKNOWN_VALUE

    def _thing(self, module: Module, binding: Binding) -> Value:
        for thing in self.names.bound(module, binding):
            if isinstance(thing, Function) and self.is_graph_function(thing):
                return sig.FUNCTION
        if binding.kind == "import" and "." in binding.target:
            owner, _, name = binding.target.rpartition(".")
            there = self.project.find(module, owner)
            if there is not None and there is not module:
                return join(self.binding(there, b) for b in self.names.exported(there, name))
        return UNKNOWN_VALUE

    def element(self, module: Module, iterated: ast.expr, path: tuple[int, ...] = ()) -> Value:
        """The element of an iterable, at a place in its structure."""
        if isinstance(iterated, ast.Call):
            name = self.names.name(module, iterated.func) or last_word(iterated.func)
            args = [a for a in iterated.args if not isinstance(a, ast.Starred)]
            if name in ("enumerate", "builtins.enumerate") and args:
                if path[:1] == (0,):
                    return sig.SCALAR
                return self.element(module, args[0], path[1:]) if path else UNKNOWN_VALUE
            if name == "zip" and args:
                return (
                    self.element(module, args[path[0]], path[1:])
                    if path and 0 <= path[0] < len(args)
                    else UNKNOWN_VALUE
                )
            if name in sig.TRANGES:
                return sig.SCALAR
            if name in sig.PASSING and args:
                return self.element(module, args[0], path)
        return at(self.value(module, iterated).element(), path)

    def parameter(self, module: Module, binding: Binding) -> Value:
        """The value of a parameter: self, its annotation, else arguments of the project's calls, else its default."""
        node = binding.scope.node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return UNKNOWN_VALUE
        function = self.names.function(module, node)
        names = [a.arg for a in function.parameters]
        if function.cls is not None and names[:1] == [binding.name] and not is_static(function):
            return self.instance(function.cls)
        if binding.annotation is not None and (said := self.annotation(module, binding.annotation)).known:
            return said
        given_values = [
            self.value(caller, value)
            for caller, call in self.callers(function)
            if (value := passed(call, function, binding.name)) is not None
        ]
        found = join(given_values)
        if found.known:
            return found
        given = default(node.args, binding.name)
        return self.value(module, given) if given is not None else UNKNOWN_VALUE

    def annotation(self, module: Module, expr: ast.expr) -> Value:
        """The value that an annotation describes, including ``Optional[X]``, ``X | None`` and strings."""
        if isinstance(expr, ast.Constant) and isinstance(expr.value, str):
            return self._quoted(module, expr.value)
        if isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.BitOr):
            return join((self.annotation(module, expr.left), self.annotation(module, expr.right)))
        if isinstance(expr, ast.Subscript):
            outer = last_word(expr.value)
            inner = self.annotation(module, expr.slice)
            if outer == "Optional":
                return inner
            return many(inner) if outer in ("List", "list", "Sequence", "Iterable", "Set", "set") else UNKNOWN_VALUE
        if isinstance(expr, ast.Constant):
            return sig.NONE if expr.value is None else UNKNOWN_VALUE
        for thing in self.names.things(module, expr):
            if isinstance(thing, Class):
                return self.instance(thing)
            if isinstance(thing, str):
                return sig.annotated(thing)
        return sig.annotated(expr.id) if isinstance(expr, ast.Name) else UNKNOWN_VALUE

    def _quoted(self, module: Module, text: str) -> Value:
        """The value of a quoted annotation, if it is a plain name that the module binds."""
        bindings = self.names.exported(module, text) if text.isidentifier() else ()
        for thing in (t for b in bindings for t in self.names.bound(module, b)):
            return self.instance(thing) if isinstance(thing, Class) else sig.annotated(str(thing))
        return sig.annotated(text)

    # ---- attributes and calls ------------------------------------------------------------------------------------

    def _attribute(self, module: Module, expr: ast.Attribute) -> Value:
        base = self.value(module, expr.value)
        if base.cls is not None:
            owner = self.names.owner(base.cls, expr.attr)
            if owner is not None:
                return join(self.binding(owner.module, b) for b in owner.scope.attributes[expr.attr])
        for thing in self.names.things(module, expr):
            if isinstance(thing, Function):
                return sig.FUNCTION if self.is_graph_function(thing) else UNKNOWN_VALUE
        if base.tag in (Tag.TENSOR, Tag.VARIABLE, Tag.NUMPY) and expr.attr in ("T", "real", "imag"):
            return base
        if base.kind == sig.NAMESPACE.kind:
            added = module.flow.calls.get("add_argument", ())
            return option(added, expr.attr, lambda given: self.value(module, given))
        if base.tag is Tag.MODEL and expr.attr in ("output", "outputs", "input", "inputs"):
            return sig.TENSOR
        return self._exported(module, expr)

    def _exported(self, module: Module, expr: ast.Attribute) -> Value:
        """The value of a global of another project module: ``config.RATE``."""
        for base in self.names.things(module, expr.value):
            if isinstance(base, Module) and base is not module:
                return join(self.binding(base, b) for b in self.names.exported(base, expr.attr))
        return UNKNOWN_VALUE

    def _call(self, module: Module, call: ast.Call) -> Value:
        found = []
        for thing in self.names.things(module, call.func):
            if isinstance(thing, str):
                found.append(self._library(module, call, thing))
            elif isinstance(thing, Class):
                found.append(self.instance(thing))
            elif isinstance(thing, Function):
                found.append(self.returned(thing))
        if found:
            return join(found)
        callee = self.value(module, call.func)
        if callee.tag in (Tag.MODEL, Tag.LAYER, Tag.FUNCTION):
            return self._answer(callee)
        if isinstance(call.func, ast.Name) and call.func.id in _BUILTIN:
            return self._builtin(module, call, call.func.id)
        return UNKNOWN_VALUE

    def _answer(self, callee: Value) -> Value:
        """The result of a model, layer or tf.function: a tensor, unless the project's ``call`` gives several things."""
        own = self.methods(callee.cls, "call") if callee.cls is not None else []
        if any(isinstance(part, _SEVERAL) for f in own for given in f.scope.returns for part in branches(given)):
            return join(self.returned(function) for function in own)
        return sig.TENSOR

    def _library(self, module: Module, call: ast.Call, name: str) -> Value:
        if name == "tensorflow_datasets.load":
            split = next((k.value for k in call.keywords if k.arg == "split"), call.args[1] if call.args[1:] else None)
            info = any(k.arg == "with_info" and true(k.value) for k in call.keywords)
            one = isinstance(split, ast.Constant) and isinstance(split.value, str)
            data = sig.DATASET if one else sig.DATASETS
            return Value(parts=(data, UNKNOWN_VALUE)) if info else data
        if name.startswith("keras.datasets."):
            return Value(parts=(sig.NUMPYS, sig.NUMPYS))
        if name in sig.PASSING and call.args:
            return self.value(module, call.args[0])
        if name == "next" and call.args:
            return self.value(module, call.args[0]).element()
        return sig.returned(name)

    def _builtin(self, module: Module, call: ast.Call, name: str) -> Value:
        first = self.value(module, call.args[0]) if call.args else UNKNOWN_VALUE
        if name == "iter":
            return sig.ITERATOR if first.tag is Tag.DATASET and not first.many else first
        if name == "next":
            return first.element()
        if name in ("min", "max"):
            return join(self.value(module, a) for a in call.args) if len(call.args) > 1 else first.element()
        if name in ("abs", "round", "sum", "pow") and first.tag in (Tag.TENSOR, Tag.NUMPY):
            return Value(first.tag, kind=first.kind)
        if name in sig.PASSING:
            return many(first.element()) if first.known else UNKNOWN_VALUE
        return sig.returned(name)

    # ---- functions and classes of the project --------------------------------------------------------------------

    def instance(self, cls: Class) -> Value:
        """The value of an instance of a project class: a Model if it inherits from one."""
        for name in self.names.lineage(cls):
            tag = sig.annotated(name).tag if name != cls.name else Tag.UNKNOWN
            if tag is not Tag.UNKNOWN:
                return Value(tag, kind=name, cls=cls)
            if name.startswith("transformers.TF"):
                return Value(Tag.MODEL, kind="keras.Model", cls=cls)
        own = cls.name.partition(".")[0]
        library = next((n for n in self.names.lineage(cls) if n.partition(".")[0] != own), cls.name)
        return Value(kind=library, cls=cls)

    def returned(self, function: Function) -> Value:
        """The value that a project function returns; for a generator, a container of what it yields."""
        return self._returned.get(function.node, function)

    def _result(self, function: Function) -> Value:
        scope = function.scope
        if scope.yields:
            return many(join(self.value(function.module, e) for e in scope.yields))
        if self.is_graph_function(function):
            return sig.TENSOR
        found = join(self.value(function.module, e) for e in scope.returns)
        node = function.node
        if not found.known and not isinstance(node, ast.Lambda) and node.returns is not None:
            return self.annotation(function.module, node.returns)
        return found

    def is_graph_function(self, function: Function) -> bool:
        """Whether a function is decorated with tf.function, with or without arguments."""
        return self.graph_decorator(function) is not None

    def graph_decorator(self, function: Function) -> ast.expr | None:
        """The decorator that makes a function a tf.function."""
        for decorator in function.decorators:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            given = decorator.args[:1] if isinstance(decorator, ast.Call) else []  # @when(tf.function, condition)
            if any("tensorflow.function" in self.names.names(function.module, t) for t in (target, *given)):
                return decorator
        return None

    def callee(self, module: Module, call: ast.Call) -> tuple[Function, ...]:
        """The project functions that a call may run: functions, methods, constructors, calls of instances."""
        found: list[Function] = []
        for thing in self.names.things(module, call.func):
            if isinstance(thing, Function):
                found.append(thing)
            elif isinstance(thing, Class):
                found += self.methods(thing, "__init__")
        if not found:
            value = self.value(module, call.func)
            if value.cls is not None and not value.many:
                found += self.methods(value.cls, "call") or self.methods(value.cls, "__call__")
        return tuple(found)

    def methods(self, cls: Class, name: str) -> list[Function]:
        """A class's methods of a name, including inherited ones."""
        return [t for t in self.names.class_attribute(cls, name) if isinstance(t, Function)]

    def callers(self, function: Function) -> tuple[tuple[Module, ast.Call], ...]:
        """The project's calls of a function, under any imported name; at most ``MAX_CALLERS``, else none."""
        return self._called.get(function.node, function)

    def _find_callers(self, function: Function) -> tuple[tuple[Module, ast.Call], ...]:
        word = function.name
        words = [word]
        if word in ("__init__", "__call__", "call") and function.cls is not None:
            own = function.cls.scope.name.rpartition(".")[2]
            made = word == "__init__"
            words = [own, *self.project.subclasses(function.module, own)] if made else []
        if isinstance(function.node, ast.Lambda):
            words = assigned_names(function)
        candidates = [
            (module, call)
            for w in words
            for module, call in self.project.calls(function.module, w)
            if self._may_call(function, module, call)
        ]
        if len(candidates) > MAX_CANDIDATES:
            return ()
        found = tuple(
            (module, call)
            for module, call in candidates
            if any(f.node is function.node for f in self.callee(module, call))
        )
        return found if len(found) <= MAX_CALLERS else ()

    def _may_call(self, function: Function, module: Module, call: ast.Call) -> bool:
        """Whether a call may be of a function, by a quick check: most calls with its name are of another one."""
        if module is not function.module:
            known = function.cls.scope.name if function.cls is not None else function.name
            home = function.module.name.rpartition(".")[2]
            if not module.mentions(known) and not module.mentions(home):
                return False
        if function.cls is None and isinstance(call.func, ast.Attribute):
            base = call.func.value
            while isinstance(base, ast.Attribute):
                base = base.value
            return isinstance(base, ast.Name) and any(b.kind == "import" for b in self.names.reaching(module, base))
        return True
