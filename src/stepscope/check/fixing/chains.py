"""Actions on chains of calls: ``dataset.map(f).batch(32)``."""

from __future__ import annotations

import libcst as cst

from stepscope.check.fixing.edits import CannotFixError, Edit
from stepscope.check.fixing.template import is_atom
from stepscope.check.fixing.tree import Tree
from stepscope.check.fixing.work import PlannedFile


def insert_call_in_chain(work: PlannedFile) -> tuple[Edit, ...]:
    """``a.map(f)`` becomes ``a.map(f).call``, where ``call`` is ``prefetch(tensorflow.data.AUTOTUNE)``."""
    node = work.any_expression(0)
    tree = work.tree
    end = tree.range(node)[1]
    added = "." + work.text(work.told("call"), end, ())
    if not (is_atom(node) or isinstance(node, cst.Call)):
        whole_start, whole_end = tree.whole(node)
        return Edit(whole_start, whole_start, "("), Edit(whole_end, whole_end, f"){added}")
    if node.lpar and not isinstance(node, (cst.Call, cst.Name, cst.Attribute, cst.Subscript)):
        end = tree.whole(node)[1]
        return (Edit(end, end, added),)
    gap = _gap(tree, node)
    if gap is None:
        return (Edit(end, end, added),)
    place = tree.comment_at(end) if gap.startswith(("\r", "\n")) else end
    return (Edit(place, place, f"{gap}{added}"),)


def remove_call_from_chain(work: PlannedFile) -> tuple[Edit, ...]:
    """``a.cache().map(f)`` becomes ``a.map(f)``; the node is the call to remove."""
    call = work.expression(0, cst.Call)
    if call.lpar:
        raise CannotFixError("it is in parentheses")
    return (Edit(*_segment(work.tree, call), ""),)


def move_call_in_chain(work: PlannedFile) -> tuple[Edit, ...]:
    """``a.map(f).batch(8)`` becomes ``a.batch(8).map(f)``: the first node's call moves before the second's."""
    moved, before = work.expression(0, cst.Call), work.expression(1, cst.Call)
    if any(call.lpar for call in _between(moved, before)):
        raise CannotFixError("the chain has parentheses inside")
    start, end = _segment(work.tree, moved)
    place = _segment(work.tree, before)[0]
    return Edit(place, place, work.tree.text[start:end]), Edit(start, end, "")


def _receiver(call: cst.Call) -> cst.BaseExpression | None:
    return call.func.value if isinstance(call.func, cst.Attribute) else None


def _between(outer: cst.Call, inner: cst.Call) -> list[cst.Call]:
    """The calls from one of a chain down to an inner one, including the inner one."""
    found = []
    below = _receiver(outer)
    while isinstance(below, cst.Call):
        found.append(below)
        if below is inner:
            return found
        below = _receiver(below)
    raise CannotFixError("the two calls are not in one chain")


def _segment(tree: Tree, call: cst.Call) -> tuple[int, int]:
    """The range of a chained call: with the line break before its dot, and the comment after it."""
    receiver = _receiver(call)
    if receiver is None:
        raise CannotFixError("the target is not a method call")
    start, end = tree.whole(receiver)[1], tree.range(call)[1]
    gap = _gap(tree, call)
    if gap is None or "\\" in gap:
        return start, end
    return tree.comment_at(start), tree.comment_at(end)


def _gap(tree: Tree, node: cst.BaseExpression) -> str | None:
    """The line break (escaped or not) and blanks before a method call's dot; None if there are none."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    text = tree.text[tree.whole(node.func.value)[1] : tree.range(node.func.dot.whitespace_before)[1]]
    last = max(text.rfind("\n"), text.rfind("\r"))
    if last < 0 or "\\" in text:
        return text or None
    first = last - 1 if text[max(last - 1, 0) : last + 1] == "\r\n" else last
    return text[first:]
