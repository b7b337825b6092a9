"""Conversion between a frame and one string.

Formats with names only (folded stacks) carry the rest by conventions: ``f (train.py:41)`` from py-spy, ``f_[k]`` for
the kernel and ``f_[j]`` for generated code from stackcollapse-perf.pl, ``[libz.so.1]`` for a frame of a module without
symbols.
"""

from __future__ import annotations

import re

from stepscope.tables.stacks import Frame, FrameKind

_PLACED = re.compile(r"(?P<function>.+) \((?P<file>[^()]*[^()\s]):(?P<line>\d+)\)")
_FILE_ONLY = re.compile(r"(?P<function>.+) \((?P<file>[^()]*\.py)\)")
_ANNOTATED = re.compile(r"(?P<function>.+)_\[(?P<mark>[kji])\]")
_MODULE = re.compile(r"\[(?P<module>[^\]]+)\]")
_KINDS = {"k": FrameKind.KERNEL, "j": FrameKind.GENERATED, "i": FrameKind.OTHER}
UNREADABLE = "DX130"
"""Code of the diagnostics about parts of a stack file that cannot be read."""
UNKNOWN_NAME = "[unknown]"
KERNEL_MODULE = "[kernel]"
MAX_LINE = 2**31 - 1
"""Highest number that is accepted as a line number."""


def frame_of(label: str) -> Frame:
    """The frame that a label stands for. It is OTHER if the label does not give the kind of code."""
    if found := _MODULE.fullmatch(label):
        return _of_module(label, found["module"])
    if found := _ANNOTATED.fullmatch(label):
        kind = _KINDS[found["mark"]]
        return Frame(found["function"], module=KERNEL_MODULE if kind is FrameKind.KERNEL else "", kind=kind)
    found = _PLACED.fullmatch(label) or _FILE_ONLY.fullmatch(label)
    if found is None:
        return Frame(label)
    file, line = found["file"], int(found.groupdict().get("line") or 0)
    if line > MAX_LINE:
        return Frame(label)
    kind = FrameKind.PYTHON if file.endswith((".py", ".pyx")) or file.startswith("<") else FrameKind.OTHER
    return Frame(found["function"], file=file, line=line, kind=kind)


def _of_module(label: str, module: str) -> Frame:
    if label in {UNKNOWN_NAME, "[[unknown]]"}:
        return Frame(UNKNOWN_NAME, resolved=False)
    if ".so" in module or "/" in module:
        return Frame(label, module=module, kind=FrameKind.NATIVE, resolved=False)
    return Frame(label)


def label_of(frame: Frame) -> str:
    """A frame as one string without ``;`` and line breaks: ``frame_of`` restores function, place and kind."""
    text = frame.function
    if frame.kind is FrameKind.KERNEL and frame.resolved:
        text += "_[k]"
    elif frame.kind is FrameKind.GENERATED and frame.resolved:
        text += "_[j]"
    elif frame.file and frame.line:
        text += f" ({frame.file}:{frame.line})"
    elif frame.file.endswith(".py"):
        text += f" ({frame.file})"
    return clean(text) or UNKNOWN_NAME


def clean(text: str) -> str:
    """A name without characters that separate frames and lines."""
    return "".join(c if c.isprintable() else " " for c in text).replace(";", ":").strip()
