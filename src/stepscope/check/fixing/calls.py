"""Actions on a call and its arguments."""

from __future__ import annotations

import libcst as cst

from stepscope.check.fixing.edits import CannotFixError, Edit
from stepscope.check.fixing.template import one_expression
from stepscope.check.fixing.tree import Tree
from stepscope.check.fixing.work import PlannedFile

OPEN = (
    cst.BinaryOperation, cst.BooleanOperation, cst.Comparison, cst.UnaryOperation, cst.IfExp, cst.Lambda, cst.Await,
    cst.Yield, cst.NamedExpr, cst.GeneratorExp, cst.Tuple, cst.ConcatenatedString,
)  # fmt: skip
"""Expressions whose meaning changes next to an operator or a dot."""


def add_keyword(work: PlannedFile) -> tuple[Edit, ...]:
    """``f(x)`` becomes ``f(x, keyword=value)``; ``@f`` becomes ``@f(keyword=value)``."""
    target = work.any_expression(0)
    keyword = work.told("keyword")
    value = work.text(work.told("value"), work.tree.range(target)[1])
    if not isinstance(target, cst.Call):
        if not isinstance(work.tree.parent(target), cst.Decorator):
            raise CannotFixError("the target is not a call")
        end = work.tree.whole(target)[1]
        return (Edit(end, end, f"({keyword}={value})"),)
    if _find(target, keyword) is not None:
        raise CannotFixError(f"{keyword} is already given")
    return insert_argument(work.tree, target, f"{keyword}={value}")


def replace_keyword(work: PlannedFile) -> tuple[Edit, ...]:
    """``f(keyword=old)`` becomes ``f(keyword=value)``; a positional argument (``index``) is replaced in place."""
    call = work.expression(0, cst.Call)
    keyword = work.told("keyword")
    value = work.text(work.told("value"), work.tree.range(call)[1])
    found = _find(call, keyword, _index(work))
    if found is None:
        return insert_argument(work.tree, call, f"{keyword}={value}")
    return work.tree.rewrite(*work.tree.whole(found.value), value)


def remove_keyword(work: PlannedFile) -> tuple[Edit, ...]:
    """``f(x, keyword=old)`` becomes ``f(x)``; also for a positional argument (``index``) if it is the last one."""
    call = work.expression(0, cst.Call)
    index = _index(work)
    found = _find(call, work.told("keyword"), index)
    if found is None:
        raise CannotFixError(f"{work.told('keyword')} is not given")
    if found.keyword is None and len(_positional(call)) - 1 != index:
        raise CannotFixError(f"{work.told('keyword')} is given by position, before others")
    return remove_argument(work.tree, call, found)


def rename_call(work: PlannedFile) -> tuple[Edit, ...]:
    """``f(x)`` becomes ``name(x)``; with ``method``, ``a.f(x)`` becomes ``a.method(x)``."""
    call = work.expression(0, cst.Call)
    if work.has("method"):
        if not isinstance(call.func, cst.Attribute):
            raise CannotFixError("the target is not a method call")
        return work.tree.rewrite(*work.tree.range(call.func.attr), work.told("method"))
    start, end = work.tree.whole(call.func)
    return work.tree.rewrite(start, end, work.text(work.told("name"), start))


def wrap_call(work: PlannedFile) -> tuple[Edit, ...]:
    """``x`` becomes ``wrapper(x)``."""
    node = work.any_expression(0)
    start, end = work.tree.whole(node)
    wrapper = work.text(work.told("wrapper"), start)
    if isinstance(node, (cst.Tuple, cst.GeneratorExp, cst.NamedExpr, cst.Yield)) and not node.lpar:
        wrapper, closing = f"{wrapper}((", "))"
    else:
        wrapper, closing = f"{wrapper}(", ")"
    return Edit(start, start, wrapper), Edit(end, end, closing)


def unwrap_call(work: PlannedFile) -> tuple[Edit, ...]:
    """``f(x)`` becomes ``x``."""
    call = work.expression(0, cst.Call)
    if not call.args or call.args[0].star or call.args[0].keyword is not None:
        raise CannotFixError("its first argument is not given by position")
    inner = call.args[0].value
    text = work.tree.source(inner)
    if not one_expression(text) or (isinstance(inner, OPEN) and not inner.lpar):
        text = f"({text})"
    return work.tree.rewrite(*work.tree.whole(call), text)


def replace_expression(work: PlannedFile) -> tuple[Edit, ...]:
    """An expression becomes ``value``; ``$1`` is its own text, ``$2`` and up the texts of the plan's other nodes."""
    node = work.any_expression(0)
    start, end = work.tree.whole(node)
    value = work.text(work.told("value"), start)
    if node.lpar and not isinstance(work.tree.parent(node), cst.Arg):
        value = f"({value})"
    return work.tree.rewrite(start, end, value)


# ---- arguments -----------------------------------------------------------------------------------------------------


def _positional(call: cst.Call) -> list[cst.Arg]:
    return [a for a in call.args if a.keyword is None and not a.star]


def _index(work: PlannedFile) -> int | None:
    return int(work.told("index")) if work.has("index") else None


def _find(call: cst.Call, keyword: str, index: int | None = None) -> cst.Arg | None:
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == keyword:
            return argument
    if any(a.star == "**" for a in call.args):
        raise CannotFixError("arguments are hidden behind **")
    before = call.args[: index + 1] if index is not None else ()
    if index is not None and len(before) == index + 1 and not any(a.star or a.keyword for a in before):
        return call.args[index]
    return None


def insert_argument(tree: Tree, call: cst.Call, text: str) -> tuple[Edit, ...]:
    """A further argument at the end of a call, on its own line if the others have one."""
    close = tree.range(call)[1] - 1
    if not call.args:
        return (Edit(close, close, text),)
    last = call.args[-1]
    end = tree.whole(last.value)[1]
    if isinstance(last.value, cst.GeneratorExp) and not last.value.lpar:
        start = tree.whole(last.value)[0]
        return Edit(start, start, "("), Edit(end, end, f"), {text}")
    start = tree.range(last)[0]
    begin = tree.lines.begin(start)
    own_line = not tree.text[begin:start].strip()
    if not own_line:
        return (Edit(end, end, f", {text}"),)
    indent = tree.text[begin:start]
    comma = isinstance(last.comma, cst.Comma)
    close_line = tree.lines.begin(close)
    if close_line > end and not tree.text[close_line:close].strip():
        added = f"{indent}{text}{',' if comma else ''}{tree.lines.newline}"
        return (*(() if comma else (Edit(end, end, ","),)), Edit(close_line, close_line, added))
    if len(call.args) > 1 and tree.lines.begin(tree.range(call.args[-2])[0]) == begin:
        return (Edit(end, end, f", {text}"),)
    return (Edit(end, end, f",{tree.lines.newline}{indent}{text}"),)


def remove_argument(tree: Tree, call: cst.Call, gone: cst.Arg) -> tuple[Edit, ...]:
    """A call without one of its arguments; comments around it stay."""
    start, end = tree.range(gone)[0], tree.whole(gone.value)[1]
    place = list(call.args).index(gone)
    if isinstance(gone.comma, cst.Comma):
        end = tree.range(gone.comma)[1]
        blank = _only_blanks(tree.text[end:])
        begin, line_end = tree.lines.begin(start), tree.line_end(end)
        if not tree.text[begin:start].strip() and end + blank >= line_end:
            return (Edit(begin, tree.lines.after(end), ""),)
        trailing = place == len(call.args) - 1
        if not trailing and end + blank < line_end:
            end += blank
    edits = [Edit(start, end, "")]
    if place and place == len(call.args) - 1 and not isinstance(gone.comma, cst.Comma):
        comma = call.args[place - 1].comma
        if isinstance(comma, cst.Comma):
            before = tree.range(comma)[0]
            between = tree.text[before + 1 : start]
            if "#" not in between:
                edits = [Edit(before, end, "")]
            else:
                edits = [Edit(before, before + 1, ""), *_line(tree, start, end)]
    return tuple(edits)


def _line(tree: Tree, start: int, end: int) -> tuple[Edit, ...]:
    """Remove a range, and its line if nothing else is on it."""
    begin = tree.lines.begin(start)
    alone = not (tree.text[begin:start] + tree.text[end : tree.line_end(end)]).strip()
    return (Edit(begin, tree.lines.after(end), ""),) if alone else (Edit(start, end, ""),)


def _only_blanks(text: str) -> int:
    return len(text) - len(text.lstrip(" \t"))
