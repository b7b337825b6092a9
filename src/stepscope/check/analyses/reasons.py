"""Comments in which an author says why the code is as it is: what is done on purpose is not reported.

Only a comment at the code counts: on its own lines, or in the lines of comments right above its statement.
"""

from __future__ import annotations

import ast
import re

from stepscope.check.context import Context

SEQUENTIAL = re.compile(
    r"thread.?(?:un)?safe|(?:\bnot?\b|n't\b|\bnever\b|\bwithout\b|\bavoid).*\b(?:parallel|concurren|thread)",
    re.IGNORECASE,
)
"""Words of a comment that says why something does not run in parallel."""
RESTARTS = re.compile(r"\b(?:fresh|reset|restart|from scratch|re-?initiali[sz]e|re-?load)", re.IGNORECASE)
"""Words of a comment that says that each iteration starts again on purpose."""
_COMMENT = re.compile(r"#.*$")


def says(ctx: Context, node: ast.AST, words: re.Pattern[str]) -> bool:
    """Whether a comment at the statement around a node has one of the words."""
    statement: ast.AST | None = node
    while statement is not None and not isinstance(statement, ast.stmt):
        statement = ctx.parent(statement)
    if statement is None:
        return False
    lines = ctx.module.source.lines
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    comments = [_COMMENT.search(line) for line in lines[first - 1 : last]]
    above = first - 2
    while above >= 0 and lines[above].lstrip().startswith("#"):
        comments.append(_COMMENT.search(lines[above]))
        above -= 1
    return any(words.search(found[0]) for found in comments if found is not None)
