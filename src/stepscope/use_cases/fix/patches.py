"""Texts and the patch between them: unified diffs that ``git apply`` and ``patch -p1`` take, made and applied."""

from __future__ import annotations

import difflib
import io
import os
import re
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")
_FILE = re.compile(r"^--- a/(.*)\n\+\+\+ b/.*\n", re.MULTILINE)
_NO_NEWLINE = "\\ No newline at end of file\n"


class RefusedError(Exception):
    """A change cannot be made in these texts; the message says why."""


def text_of(path: str, data: bytes) -> str:
    """The text of a Python file.

    Raises:
        RefusedError: it is none, or not in UTF-8, in which a patch is written.
    """
    if not path.endswith(".py"):
        raise RefusedError(f"{path} is no Python file")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeError) as error:
        raise RefusedError(f"{path}: it cannot be decoded") from error
    if encoding != "utf-8":
        raise RefusedError(f"{path} is not in plain UTF-8")
    return text


def diff(name: str, before: str, after: str) -> str:
    """The unified diff of a file; "" if nothing differs."""
    lines = difflib.unified_diff(_LINE.findall(before), _LINE.findall(after), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines)


def patch(base: Path, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    """The diffs of all files that differ, named from a folder on.

    Args:
        base: folder that all files lie in.
        before: contents by absolute path.
        after: new contents of some of them.
    """
    changed = sorted(path for path, data in after.items() if data != before[path])
    return "".join(
        diff(Path(path).relative_to(base).as_posix(), before[path].decode(), after[path].decode()) for path in changed
    )


def base_of(files: Sequence[str], top: Path | None, cwd: Path) -> Path:
    """The folder that a patch is applied in: the repository's, else the working directory, else what all lie in."""
    for folder in (top, cwd):
        if folder is not None and all(Path(file).is_relative_to(folder) for file in files):
            return folder
    return Path(os.path.commonpath([str(Path(file).parent) for file in files]))


def parts(text: str) -> dict[str, str]:
    """The hunks of each file of a diff."""
    found = _FILE.split(text)
    return dict(zip(found[1::2], found[2::2], strict=True))


def applied(text: str, hunks: str) -> str:
    """The text after the hunks of one file.

    Raises:
        RefusedError: the text is not what the diff was made of.
    """
    lines, todo = _LINE.findall(text), _LINE.findall(hunks)
    done, made = 0, list[str]()
    for at, line in enumerate(todo):
        head, sign, content = _HUNK.match(line), line[:1], line[1:]
        if at + 1 < len(todo) and todo[at + 1] == _NO_NEWLINE:
            content = content.removesuffix("\n")
        if head is not None:
            start = int(head[1]) - (head[2] != "0")
            made += lines[done:start]
            done = start
        elif sign in {" ", "-"}:
            if lines[done : done + 1] != [content]:
                raise RefusedError("the file is not what the run has seen")
            done += 1
        if sign in {" ", "+"}:
            made.append(content)
    return "".join([*made, *lines[done:]])
