"""The kind of code in a module (a library, a program, a bracketed name of perf), by its name."""

from __future__ import annotations

import re

from stepscope.readers.stacks.labels import KERNEL_MODULE, UNKNOWN_NAME
from stepscope.tables.stacks import FrameKind

_GENERATED = re.compile(
    r"(?:.*/)?perf-\d+\.map|\[JIT\].*|//anon|anon_inode:.*|/?memfd:.*|.*/jitted-\d+-\d+\.so|/dev/zero.*|\[anon(:.*)?\]"
)
_KERNEL_FILE = re.compile(r"(?:.*/)?vmlinu[xz][^/]*|.*\.ko(?:\.(?:gz|xz|zst))?")
_KERNEL_NAMES = frozenset({KERNEL_MODULE, "[kernel.kallsyms]", "[guest.kernel.kallsyms]", "[kernel.vmlinux]"})
_OF_USERS = frozenset({"[vdso]", "[vsyscall]", "[heap]", "[stack]", "[uprobes]"})


def kind_of_module(module: str) -> FrameKind:
    """The kind of code in a module; OTHER if there is no module.

    Brackets mark the kernel, its modules ("[nf_conntrack]"), and a few mappings of the process.
    """
    if not module:
        return FrameKind.OTHER
    if _GENERATED.fullmatch(module):
        return FrameKind.GENERATED
    if module.startswith("[") and module not in _OF_USERS:
        return FrameKind.KERNEL
    return FrameKind.KERNEL if _KERNEL_FILE.fullmatch(module) else FrameKind.NATIVE


def plain_module(module: str) -> str:
    """A module's name; the kernel proper has one name, whatever the tool calls it."""
    return KERNEL_MODULE if module in _KERNEL_NAMES else module


def stand_in(module: str, kind: FrameKind) -> str:
    """The name of a frame without a symbol: after its module, if known."""
    if kind is FrameKind.GENERATED:
        return "[generated code]"
    last = module.rstrip("/").rpartition("/")[2].strip("[]")
    return f"[{last}]" if last else UNKNOWN_NAME
