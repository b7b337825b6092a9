"""The malloc that serves a process, seen from outside: preloaded, linked, or the C library's own; and its settings.

Found as the dynamic linker finds it: the first of the program, the preloaded libraries and the libraries that the
program needs (breadth first) that exports ``malloc``. A library loaded later, or one that holds an allocator under
other names (pyarrow's), serves only itself and does not count. Its symbols identify a malloc.

Source: ld.so(8), "LD_PRELOAD"; System V ABI, "Shared object dependencies".
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from stepscope.native.formats.elf import ElfFile
from stepscope.tables.allocator_info import AllocatorInfo
from stepscope.tables.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MARKS = (
    ("jemalloc", ("mallctl", "je_mallctl", "je_malloc_conf")),
    ("tcmalloc", ("tc_malloc", "TCMallocInternalMalloc", "MallocExtension_Internal_GetNumericProperty")),
    ("mimalloc", ("mi_malloc",)),
    ("tbbmalloc", ("scalable_malloc", "__TBB_malloc_proxy")),
)
"""Symbols that only one allocator has."""
_SETTINGS = {
    "glibc": ("GLIBC_TUNABLES", "MALLOC_"),
    "jemalloc": ("MALLOC_CONF", "JE_MALLOC_CONF"),
    "tcmalloc": ("TCMALLOC_", "GLIBCXX_FORCE_NEW"),
    "mimalloc": ("MIMALLOC_",),
    "tbbmalloc": ("TBB_MALLOC_",),
}
_TENSORFLOW_SETTINGS = (
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_DISABLE_MKL",
    "TF_ONEDNN_USE_SYSTEM_ALLOCATOR",
    "TF_CPU_ALLOCATOR_USE_BFC",
    "TF_MKL_ALLOC_MAX_BYTES",
)
_INFERENCE = ("libonnxruntime.so", "onnxruntime_pybind11_state")
_TENSORFLOW = ("libtensorflow_cc.", "libtensorflow.", "libtensorflow_framework.", "_pywrap_tensorflow")
_FRAMEWORKS = (
    ("tensorflow", _TENSORFLOW, ("tensorflow", "tensorflow_cpu")),
    ("onnxruntime", _INFERENCE, ("onnxruntime", "onnxruntime_gpu")),
)
"""Frameworks, with prefixes of their libraries' names and the packages that contain them."""
_ONEDNN_FLAGS = frozenset(
    ("avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16", "asimddp", "i8mm", "bf16")
)
"""CPU features with which TensorFlow's wheels enable oneDNN. Source: TensorFlow 2.9 release notes."""
_MAX_LIBRARIES = 400
_MAX_VALUE = 300


def look(pid: int) -> AllocatorInfo | None:
    """The malloc of a process; None if it has gone or may not be examined.

    Cost: about 5 ms of CPU time.
    """
    try:
        maps = Path(f"/proc/{pid}/maps").read_text("utf-8", "replace")
        environment = environment_of(pid)
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None
    if not program:
        return None
    mapped = _mapped(maps)
    library, name, how = _provider(f"/proc/{pid}/root", program, mapped, environment)
    prefixes = (*_SETTINGS.get(name, ()), *_TENSORFLOW_SETTINGS)
    settings = {k: v[:_MAX_VALUE] for k, v in sorted(environment.items()) if k.startswith(prefixes)}
    pool = _pool(environment) if any(file.startswith(_TENSORFLOW) for file in mapped) else ""
    return AllocatorInfo(name=name, how=how, library=library, settings=settings, pool=pool)


def frameworks_of(pid: int) -> dict[str, str]:
    """Frameworks that a process has mapped, with their versions; "?" if no package next to one states its version."""
    try:
        mapped = _mapped(Path(f"/proc/{pid}/maps").read_text("utf-8", "replace"))
    except OSError:
        return {}
    found = {}
    for framework, files, packages in _FRAMEWORKS:
        path = next((path for name, path in mapped.items() if name.startswith(files)), None)
        if path is not None:
            found[framework] = _version(Path(f"/proc/{pid}/root{path}"), framework, packages)
    return found


def _version(library: Path, framework: str, packages: tuple[str, ...]) -> str:
    """The version in the metadata of the package that contains a library, which is next to the framework's folder."""
    site = next((folder.parent for folder in library.parents if folder.name == framework), None)
    facts = site.glob(f"{framework}*-*.dist-info") if site is not None else ()
    versions = [p.name.removesuffix(".dist-info").rpartition("-") for p in facts]
    return next((version for name, _, version in versions if name in packages), "?")


def _pool(environment: Mapping[str, str]) -> str:
    """Whether TensorFlow's oneDNN pool serves the tensors, decided as TensorFlow does when it is loaded."""
    told = environment.get("TF_ENABLE_ONEDNN_OPTS", "").strip().lower()
    if told:
        return "oneDNN" if told in {"1", "true"} else "none"
    try:
        words = set(Path("/proc/cpuinfo").read_text("utf-8", "replace").partition("\n\n")[0].split())
    except OSError:
        return ""
    return "oneDNN" if words & _ONEDNN_FLAGS else ""


def environment_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with, which its dynamic linker and its malloc have read.

    Raises:
        OSError: it has gone, or may not be examined.
    """
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace").split("\0")
    return {key: value for key, equals, value in (pair.partition("=") for pair in pairs) if equals}


def _mapped(maps: str) -> dict[str, str]:
    """Mapped files by the last part of their names; of several, the first."""
    found: dict[str, str] = {}
    for line in maps.splitlines():
        _, slash, path = line.partition("/")  # address, rights, offset, device and inode come before
        if slash:
            found.setdefault(PurePosixPath(path).name, slash + path)
    return found


def _provider(
    root: str, program: str, mapped: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[str, str, str]:
    """(file, name of the allocator, way it was loaded) of the first that exports ``malloc``."""
    preloaded = [PurePosixPath(p).name for p in environment.get("LD_PRELOAD", "").replace(":", " ").split()]
    for path, elf in _in_order(root, program, preloaded, mapped):
        try:
            static = path == program and not elf.dynamic()[1]
            if not (elf.defines("malloc") if static else elf.exports("malloc")):
                continue
            name = _name(elf, path, static=static)
            name_of_file = PurePosixPath(path).name
            if name in {"glibc", "musl"}:
                how = "static" if static else "default"
            elif path == program:
                how = "static"
            else:
                how = "preloaded" if _is_any(name_of_file, preloaded) else "linked"
            return path, name, how
        finally:
            elf.close()
    return "", "unknown", "unknown"


def _is_any(name: str, wanted: list[str]) -> bool:
    """Whether a file is one of the requested ones: a requested name may lack the last numbers of the file's version."""
    return any(name == one or name.startswith(one + ".") for one in wanted)


def _in_order(
    root: str, program: str, preloaded: list[str], mapped: Mapping[str, str]
) -> Iterator[tuple[str, ElfFile]]:
    """The files in the dynamic linker's symbol search order. The caller closes them."""
    waiting = [program, *(path for name, path in mapped.items() if _is_any(name, preloaded))]
    seen: set[str] = set()
    while waiting and len(seen) < _MAX_LIBRARIES:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        try:
            elf = ElfFile.open(root + path)
        except (OSError, FormatError):
            continue
        for needed in elf.dynamic()[1]:
            waiting += [mapped[name] for name in mapped if _is_any(name, [PurePosixPath(needed).name])][:1]
        yield path, elf


def _name(elf: ElfFile, path: str, *, static: bool) -> str:
    for name, marks in _MARKS:
        if any(elf.exports(mark) or (static and elf.defines(mark)) for mark in marks):
            return name
    file = PurePosixPath(path).name
    if file.startswith(("libc.so.", "libc-2.")) or elf.exports("gnu_get_libc_version"):
        return "glibc"
    if file.startswith("ld-musl") or "musl" in file:
        return "musl"
    static_glibc = static and elf.defines("__libc_malloc")
    return "glibc" if static_glibc else "other"
