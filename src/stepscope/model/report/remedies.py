"""Remedies that are settings of a job's environment: named by findings, applied by ``stepscope run --apply``.

Light-weight: the launcher reads this before the job has started.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRemedy:
    """A setting for one job that needs no change of its code."""

    id: str
    text: str
    """Effect, as an instruction to the reader."""
    variables: Mapping[str, str] = field(default_factory=dict)
    preload: str = ""
    """Shared library to load first, by its soname."""
    alone: bool = False
    """Whether other allocators are taken out of LD_PRELOAD."""
    built: bool = False
    """Whether the library to load first is the one that is built here (``launcher.layouts``)."""
    package: str = ""
    """Package that provides it on Debian and Ubuntu."""
    measured: str = ""
    """Measured gain and its conditions. Source: docs/decisions/0018."""


HUGE_PAGES, TORCH_HUGE_PAGES = "glibc-hugepages", "torch-hugepages"
C_LIBRARY = "glibc-malloc"
ALLOCATORS = ("libjemalloc", "libtcmalloc", "libmimalloc", "libtbbmalloc")
"""What the names of libraries begin with that are allocators."""
_KEEP = "dirty_decay_ms:10000,muzzy_decay_ms:0,oversize_threshold:0"
"""jemalloc settings: freed pages stay for ten seconds, including blocks of 8 MiB or more (released immediately by
default)."""

ENVIRONMENT_REMEDIES: Mapping[str, EnvironmentRemedy] = {
    remedy.id: remedy
    for remedy in (
        EnvironmentRemedy(
            id="onednn-pool",
            text="let oneDNN's pool serve the tensors: TF_ENABLE_ONEDNN_OPTS=1 (rounding of results may differ)",
            variables={"TF_ENABLE_ONEDNN_OPTS": "1"},
            measured="131,000 page faults a step to none, tensors of 32 MiB",
        ),
        EnvironmentRemedy(
            id="jemalloc-keep",
            text=f"let jemalloc keep what is freed: MALLOC_CONF={_KEEP}",
            variables={"MALLOC_CONF": _KEEP},
            measured="8,200 page faults a step to none, tensors of 2 and 4 MiB; likewise with 32 MiB",
        ),
        EnvironmentRemedy(
            id="glibc-keep",
            text="let the C library's malloc keep what is freed: MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=4294967296 "
            "MALLOC_TRIM_THRESHOLD_=17179869184 (threads that allocate much wait for one lock)",
            variables={
                "MALLOC_ARENA_MAX": "1",
                "MALLOC_MMAP_THRESHOLD_": "4294967296",
                "MALLOC_TRIM_THRESHOLD_": "17179869184",
                "MALLOC_TOP_PAD_": "67108864",
            },
            measured="time in the kernel from 54 to 5 %, tensors of 32 MiB",
        ),
        EnvironmentRemedy(
            id="preload-jemalloc",
            text="run the job on jemalloc, keeping what is freed: LD_PRELOAD=libjemalloc.so.2 MALLOC_CONF=" + _KEEP,
            variables={"MALLOC_CONF": _KEEP},
            preload="libjemalloc.so.2",
            package="libjemalloc2",
            measured="time in the kernel from 54 to 3 %, tensors of 32 MiB",
        ),
        EnvironmentRemedy(
            id="preload-tcmalloc",
            text="run the job on tcmalloc: LD_PRELOAD=libtcmalloc_minimal.so.4",
            preload="libtcmalloc_minimal.so.4",
            package="libtcmalloc-minimal4",
        ),
        EnvironmentRemedy(
            id=C_LIBRARY,
            text="run the job on the C library's malloc: no other in LD_PRELOAD, and "
            "LD_PRELOAD=libc.so.6:libstdc++.so.6, which come before one that the program is linked with",
            preload="libc.so.6",
            package="libc6",
            alone=True,
        ),
        EnvironmentRemedy(
            id=HUGE_PAGES,
            text="let the C library's malloc ask for huge pages: GLIBC_TUNABLES=glibc.malloc.hugetlb=1 (glibc 2.35 or "
            "newer, transparent_hugepage madvise or always)",
            variables={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
            measured="torch 2.13.0, a convolution net of 16 pictures a batch: 900 to 2,000 page faults a step to 4",
        ),
        EnvironmentRemedy(
            id=TORCH_HUGE_PAGES,
            text="let torch ask for huge pages: THP_MEM_ALLOC_ENABLE=1 (for tensors far above 2 MiB; "
            "transparent_hugepage madvise)",
            variables={"THP_MEM_ALLOC_ENABLE": "1"},
            measured="16,385 page faults of a tensor of 64 MiB to 544, torch 2.13.0",
        ),
        EnvironmentRemedy(
            id="layout-aligned",
            text="lay allocations of 512 KiB and more on boundaries of 2 MiB, with holes between them, in huge pages "
            "(for comparison with layout-packed)",
            variables={"STEPSCOPE_LAYOUT": "padded", "STEPSCOPE_LAYOUT_HUGE": "1"},
            built=True,
        ),
        EnvironmentRemedy(
            id="layout-packed",
            text="lay allocations of 512 KiB and more one behind the other, in huge pages (for comparison with "
            "layout-aligned)",
            variables={"STEPSCOPE_LAYOUT": "packed", "STEPSCOPE_LAYOUT_HUGE": "1"},
            built=True,
        ),
        EnvironmentRemedy(
            id="thp-off",
            text="give the job no huge pages (prctl PR_SET_THP_DISABLE)",
            variables={"STEPSCOPE_THP": "off"},
            built=True,
        ),
        EnvironmentRemedy(
            id="thp-advised",
            text="give the job huge pages only where it asks for them (prctl PR_SET_THP_DISABLE, Linux 6.18)",
            variables={"STEPSCOPE_THP": "advised"},
            built=True,
        ),
        EnvironmentRemedy(
            id="thp-always",
            text="ask for huge pages in all large mappings of the job, those of malloc as well "
            "(GLIBC_TUNABLES=glibc.malloc.hugetlb=1)",
            variables={"STEPSCOPE_THP": "always", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
            built=True,
        ),
        EnvironmentRemedy(
            id="gpu-memory-growth",
            text="let TensorFlow take the GPU's memory as it needs it, not all at once: TF_FORCE_GPU_ALLOW_GROWTH=true",
            variables={"TF_FORCE_GPU_ALLOW_GROWTH": "true"},
        ),
        EnvironmentRemedy(
            id="gpu-private-threads",
            text="give each GPU threads that only launch kernels: TF_GPU_THREAD_MODE=gpu_private TF_GPU_THREAD_COUNT=2",
            variables={"TF_GPU_THREAD_MODE": "gpu_private", "TF_GPU_THREAD_COUNT": "2"},
        ),
    )
}
"""Remedies by id."""
OF_MEMORY = frozenset(ENVIRONMENT_REMEDIES) - {"gpu-memory-growth", "gpu-private-threads"}
"""Those that change the job's memory: their trials look at it."""
