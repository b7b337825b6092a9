"""Questions that several rules ask: whether a place is hot, compiled elsewhere, or part of a test; what a loop iterates
over.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator

from stepscope.check.context import Context
from stepscope.check.inference.loops import Loop
from stepscope.check.inference.names import Function
from stepscope.check.inference.tags import Class, Tag
from stepscope.check.source.modules import Module
from stepscope.check.source.syntax import last_word

FEW = 10
"""Iterations up to which a loop is not hot."""
MAX_HOMES = 8
"""Number of base classes' files that are searched."""
_WRAPPERS = frozenset({"enumerate", "tqdm", "trange", "track", "iter", "list", "zip", "reversed", "progress_bar"})
_LIBRARIES = frozenset({"tensorflow", "keras", "abc", "typing", "typing_extensions", "six"})
"""Libraries whose classes call no method of a subclass in an unknown way."""
_MAKERS = ("function", "defun")
_BUILTIN = frozenset(vars(builtins))
_PLAIN_VALUES = frozenset({Tag.PY_SCALAR, Tag.PY_STRING, Tag.BOOL, Tag.NONE, Tag.NUMPY})
MAX_LEVELS = 3
"""Calls followed from a function."""
MAKES_FUNCTIONS = (".function", "import function", "concrete_function", "contrib.eager", "defun")
"""Strings of which one occurs wherever a tf.function is made."""
_PLAIN = frozenset(
    "staticmethod classmethod property override abstractmethod typechecked jit njit wraps no_type_check".split()
)
"""Decorators that leave a function eager."""


def in_test(ctx: Context) -> bool:
    """Whether the file is a test: users do not wait for its loops."""
    return ctx.engine.project.is_test(ctx.module.path)


def hot(loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """Loops not known to run only a few times, innermost first."""
    return tuple(loop for loop in loops if loop.iterations is None or loop.iterations > FEW)


def iterated(expr: ast.expr) -> ast.expr:
    """The real iterable of a loop: ``ds`` in ``enumerate(tqdm(ds, desc="train"))``."""
    while isinstance(expr, ast.Call) and expr.args and last_word(expr.func) in _WRAPPERS:
        expr = expr.args[0]
    return expr


def over_dataset(ctx: Context, loop: ast.AST) -> bool:
    """Whether a for loop goes over the elements of a Dataset, also through enumerate and progress bars."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    source = loop.iter
    while True:
        if ctx.tag(source) in (Tag.DATASET, Tag.ITERATOR):
            return True
        inner = _inside(ctx, source)
        if inner is None:
            return False
        source = inner


def _inside(ctx: Context, source: ast.expr) -> ast.expr | None:
    """The content of a wrapper, also one that has a name: ``bar = tqdm(ds)``."""
    if isinstance(source, ast.Call) and source.args and last_word(source.func) in _WRAPPERS:
        return source.args[0]
    if isinstance(source, ast.Name):
        made = ctx.definitions(source)
        if len(made) == 1 and made[0].kind == "assign" and isinstance(made[0].value, ast.Call):
            return _inside(ctx, made[0].value)
    return None


def may_be_compiled(ctx: Context, node: ast.AST) -> bool:
    """Whether the function around a node may be made a tf.function in a way that is not followed.

    It has an unknown decorator, is passed on as a value (an argument, a return value, an attribute), or is a method of
    a class of another framework, which may call it in any way.
    """
    function = ctx.enclosing(node)
    while function is not None:
        if function.cls is not None and _of_framework(ctx, function.cls):
            return True
        if not isinstance(function.node, ast.Lambda):
            if any(last_word(_target(d)) not in _PLAIN for d in function.decorators):
                return True
            if _handed_on(ctx, function):
                return True
        function = ctx.enclosing(function.node)
    return False


def _of_framework(ctx: Context, cls: Class) -> bool:
    """Whether a class inherits from a library other than TensorFlow and the standard library."""
    own = {cls.name, *(base.name for base in _project_bases(ctx, cls))}
    libraries = (name.partition(".")[0] for name in ctx.functions.lineage(cls) if name not in own)
    return any(lib not in _LIBRARIES and lib not in sys.stdlib_module_names and lib != "object" for lib in libraries)


def _project_bases(ctx: Context, cls: Class) -> Iterator[Class]:
    """The project classes that a class inherits from."""
    todo, seen = [cls], {cls.name}
    while todo:
        for base in ctx.engine.names.bases(todo.pop()):
            if isinstance(base, Class) and base.name not in seen:
                seen.add(base.name)
                todo.append(base)
                yield base


def _target(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def _handed_on(ctx: Context, function: Function) -> bool:
    """Whether a function's name is used as a value, not called, in its file or that of a class it inherits from."""
    return any(_named(function, module) for module in _homes(ctx, function))


def _homes(ctx: Context, function: Function) -> set[Module]:
    found = {function.module}
    todo = [function.cls] if function.cls is not None else []
    while todo and len(found) < MAX_HOMES:
        for base in ctx.engine.names.bases(todo.pop()):
            if isinstance(base, Class):
                found.add(base.module)
                todo.append(base)
    return found


def _named(function: Function, module: Module) -> bool:
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            if last_word(node) != function.name:
                continue
            parent = module.parent(node)
            if isinstance(parent, ast.Call) and parent.func is node:
                continue
            if isinstance(parent, ast.Attribute):  # step.python_function, module.step
                continue
            if isinstance(node, ast.Attribute) == (function.cls is not None):
                return True
    return False


def own_calls(ctx: Context, nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """Calls below nodes of the file, except those in functions only defined there."""
    for node in nodes:
        yield from ctx.module.calls_in(node)


def free_names(function: Function) -> set[str]:
    """Names that a function reads and does not bind."""
    own = {a.arg for a in function.parameters} | {a.arg for a in function.node.args.kwonlyargs}
    own |= {a.arg for a in (function.node.args.vararg, function.node.args.kwarg) if a is not None}
    own |= set(function.scope.bindings)
    read: set[str] = set()
    for part in function.body:
        read |= {n.id for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return read - own


def shares_nothing(ctx: Context, function: Function, levels: int = MAX_LEVELS) -> bool:
    """Whether a function reads only its arguments, constants, and libraries: several threads may run it at once."""
    if function.cls is not None:
        return False
    at, free = ctx.at(function.module), free_names(function)
    names = (n for part in function.body for n in ast.walk(part) if isinstance(n, ast.Name) and n.id in free)
    return all(_shared_by_all(at, name, levels) for name in names)


def _shared_by_all(ctx: Context, name: ast.Name, levels: int) -> bool:
    if name.id in _BUILTIN and not ctx.definitions(name):
        return True
    things = ctx.things(name)
    for thing in things:
        if isinstance(thing, Class) or (
            isinstance(thing, Function) and not (levels and shares_nothing(ctx, thing, levels - 1))
        ):
            return False
    return bool(things) or ctx.tag(name) in _PLAIN_VALUES


def makers(ctx: Context) -> Iterator[ast.AST]:
    """Nodes that make a tf.function, or may: decorated functions, and calls by the names of makers."""
    for node in ctx.module.flow.nodes.get(ast.FunctionDef, ()):
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            yield node
    renamed = (n for n, ts in ctx.module.flow.imported.items() if any(t.rpartition(".")[2] in _MAKERS for t in ts))
    for call in ctx.calls(*dict.fromkeys((*_MAKERS, "get_concrete_function", *renamed))):
        yield call.node


def of_graph(ctx: Context, call: ast.Call) -> bool:
    """Whether a call is of a tf.function from code that is not itself traced.

    Cost: resolving the called object is the most expensive question about a call; ask the others first.
    """
    named = isinstance(call.func, (ast.Name, ast.Attribute))
    return named and ctx.engine.tracing.of_graph(ctx.module, call) and not ctx.traced(call)


def function_options(ctx: Context, func: ast.expr) -> dict[str, ast.expr] | None:
    """The keywords that a tf.function was made with; None if its making is not visible or hides them."""
    found: list[tuple[Context, ast.expr]] = []
    for thing in ctx.things(func):
        if isinstance(thing, Function):
            at = ctx.at(thing.module)
            decorator = at.functions.graph_decorator(thing)
            if decorator is not None:
                found.append((at, decorator))
    if not found:
        found = _made_by(ctx, func)
    options: dict[str, ast.expr] = {}
    for _, made in found:
        if isinstance(made, ast.Call):
            if any(k.arg is None for k in made.keywords):
                return None
            options |= {k.arg: k.value for k in made.keywords if k.arg is not None}
            if len(made.args) > 1:
                options["input_signature"] = made.args[1]
    return options if found else None


def _made_by(ctx: Context, func: ast.expr) -> list[tuple[Context, ast.expr]]:
    """The ``tf.function(...)`` calls assigned to a name or attribute."""
    if isinstance(func, ast.Name):
        values = [(ctx, b.value) for b in ctx.definitions(func) if b.value is not None]
    elif isinstance(func, ast.Attribute):
        owner = ctx.value(func.value).cls
        cls = ctx.engine.names.owner(owner, func.attr) if owner is not None else None
        bindings = cls.scope.attributes[func.attr] if cls is not None else []
        values = [(ctx.at(cls.module), b.value) for b in bindings if b.value is not None] if cls is not None else []
    else:
        return []
    return [(at, v) for at, v in values if isinstance(v, ast.Call) and at.name(v.func) == "tensorflow.function"]


def is_true(expr: ast.expr | None) -> bool:
    """Whether an expression is a literal True."""
    return isinstance(expr, ast.Constant) and expr.value is True


def by_version(ctx: Context, node: ast.AST) -> bool:
    """Whether a node is in a branch for some versions of a library: ``if tf.__version__ >= "1.7": ... else:``."""
    child, parent = node, ctx.parent(node)
    while parent is not None:
        test = parent.test if isinstance(parent, ast.If) and child is not parent.test else None
        if test and any(isinstance(n, ast.Attribute) and n.attr == "__version__" for n in ast.walk(test)):
            return True
        child, parent = parent, ctx.parent(parent)
    return False
