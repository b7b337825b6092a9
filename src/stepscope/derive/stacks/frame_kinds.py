"""The kind of code of a frame: the user's Python, a library's, a framework, its arithmetic, an allocator, the kernel.

The module decides most cases; what a framework links in (oneDNN, Eigen, its allocators) is recognised by the function's
name, demangled or not. In files that hold names only (folded stacks), everything below an entry into the kernel is
kernel code: those entries are a short list of symbols, and the kernel never calls user code from there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepscope.tables.stacks import Frame, FrameKind

if TYPE_CHECKING:
    from stepscope.tables.records import Bool
    from stepscope.tables.stacks import StackProfile

_FRAMEWORK_MODULE = re.compile(
    r"libtensorflow|_pywrap_|libonnxruntime|onnxruntime_pybind11|libtorch|libc10|libjax|xla_extension|libxla|"
    r"libkeras|_tf_|libtfkernel|libtpu"
)
_MATH_MODULE = re.compile(r"libdnnl|libmkl|libmklml|libopenblas|libblas|liblapack|libiomp|_multiarray_umath|libscipy_")
_ALLOCATOR_MODULE = re.compile(r"libjemalloc|libtcmalloc|libmimalloc|libtbbmalloc|libhoard")
_INTERPRETER_MODULE = re.compile(r"(libpython|python)\d*(\.\d+)*(\.so[.\d]*)?")

_LIBRARY_FILE = re.compile(r"/(site|dist)-packages/|/lib(64)?/python\d|^<frozen |/python\d+\.zip/")

_MATH = re.compile(
    r"(dnnl|mkldnn|Eigen|ruy|gemmlowp|ducc0|pocketfft|xnn|XNNPACK)(::|_)|_ZN?K?(\d+)?(dnnl|5Eigen|4dnnl)|"
    r"(cblas_|mkl_|[sdcz]gemm|[sdcz]gemv|Mlas|xnn_|jit_(avx|uni|sse|brgemm))"
)
_FRAMEWORK = re.compile(
    r"(tensorflow|tsl|xla|onnxruntime|at|c10|torch|jax|tflite)::|_ZNK?(10tensorflow|3tsl|3xla|11onnxruntime)"
)
_ALLOCATOR = re.compile(
    r"(__libc_|__)?(malloc|free|calloc|realloc|memalign|posix_memalign|aligned_alloc|valloc)(_usable_size)?|cfree|"
    r"_int_(malloc|free|realloc|memalign)(_\w+)?|malloc_consolidate|sysmalloc(_\w+)?|systrim.*|unlink_chunk.*|tcache_\w+|"
    r"operator (new|delete).*|_Zn[wa].*|_Zd[la]Pv.*|(je|mi|tc)_\w+|tcmalloc::.*|mallocx|sdallocx|"
    r".*\b(BFCAllocator|BFCArena|MklCPUAllocator|PoolAllocator|CPUAllocator|AllocateRaw|DeallocateRaw)\b.*|"
    r".*(AlignedMalloc|AlignedFree).*"
)
_INTERPRETER = re.compile(
    r"_?Py[A-Z_]\w*|_PyEval_\w+|Py_\w+|pymain_\w+|pyrun_\w+|cfunction_\w+|method_vectorcall\w*|\w+_vectorcall\w*"
)
KERNEL_ENTRY = re.compile(
    r"asm_(exc|sysvec|common_interrupt|load_gs)\w*|entry_SYSCALL(_compat)?_64\w*|entry_SYSENTER\w*|entry_INT80\w*|"
    r"do_syscall_64|x64_sys_call|page_fault|async_page_fault|apic_timer_interrupt|common_interrupt|error_entry|"
    r"exc_page_fault|do_user_addr_fault|__do_page_fault|el0t?_\w+|el0_(sync|irq|svc|da)|ret_from_fork(_asm)?|"
    r"secondary_startup_64\w*"
)
"""Symbols of the entries into the kernel, x86-64 and arm64, Linux 4.x to 6.x."""
_QUALIFIED = re.compile(r"(?:[\w&*<>: ]+ )?(?P<name>[A-Za-z_~(][^<]*)")
_WRAPPED = re.compile(r"(std|absl|__gnu_cxx|void)\b")


def classified(profile: StackProfile) -> StackProfile:
    """The profile with the most precise kind known for each frame."""
    below = _in_kernel(profile)
    frames = tuple(
        frame._replace(kind=FrameKind.KERNEL if inside and frame.kind is FrameKind.OTHER else kind_of(frame))
        for frame, inside in zip(profile.frames, below.tolist(), strict=True)
    )
    return replace(profile, frames=frames)


def kind_of(frame: Frame) -> FrameKind:
    """The kind of one frame by its own name, module and file."""
    if frame.kind is FrameKind.PYTHON:
        return FrameKind.LIBRARY if _LIBRARY_FILE.search(frame.file.replace("\\", "/")) else FrameKind.PYTHON
    if frame.kind not in {FrameKind.OTHER, FrameKind.NATIVE}:
        return frame.kind
    module = frame.module.rpartition("/")[2]
    if frame.resolved and (found := _by_function(frame.function)) is not None:
        return found
    if module and (found := _by_module(module)) is not None:
        return found
    return FrameKind.NATIVE if frame.module else frame.kind


def _by_module(module: str) -> FrameKind | None:
    for pattern, kind in (
        (_ALLOCATOR_MODULE, FrameKind.ALLOCATOR),
        (_MATH_MODULE, FrameKind.MATH),
        (_FRAMEWORK_MODULE, FrameKind.FRAMEWORK),
    ):
        if pattern.match(module):
            return kind
    return FrameKind.INTERPRETER if _INTERPRETER_MODULE.fullmatch(module) else None


def _by_function(function: str) -> FrameKind | None:
    """Kind by function name: a template of the standard library counts as what it wraps."""
    if _ALLOCATOR.fullmatch(function):
        return FrameKind.ALLOCATOR
    name = function
    if "<" in function and _WRAPPED.match(function):
        inner = [(m.start(), kind) for pattern, kind in _LAYERS if (m := pattern.search(function))]
        return min(inner)[1] if inner else FrameKind.NATIVE
    if " " in function and (found := _QUALIFIED.match(function)):
        name = found["name"]
    for pattern, kind in _LAYERS:
        if pattern.match(name):
            return kind
    if _INTERPRETER.fullmatch(name):
        return FrameKind.INTERPRETER
    return FrameKind.NATIVE if "::" in name else None


_LAYERS = ((_MATH, FrameKind.MATH), (_FRAMEWORK, FrameKind.FRAMEWORK))


def _in_kernel(profile: StackProfile) -> Bool:
    """Whether most places of each frame in stacks are at or below an entry into the kernel."""
    entry = np.array([bool(KERNEL_ENTRY.fullmatch(frame.function)) for frame in profile.frames], np.bool_)
    count = len(profile.frames)
    if not entry.any():
        return np.zeros(count, np.bool_)
    parents, leaves = profile.stacks.parent.tolist(), profile.stacks.frame.tolist()
    inside: list[bool] = []
    for parent, leaf in zip(parents, leaves, strict=True):
        inside.append(bool(entry[leaf]) or (parent >= 0 and inside[parent]))
    seen = np.bincount(profile.stacks.frame, minlength=count)
    within = np.bincount(profile.stacks.frame, np.array(inside, np.float64), minlength=count)
    return (within > seen / 2).astype(np.bool_)
