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
    package: str = ""
    """Package that provides it on Debian and Ubuntu."""
    measured: str = ""
    """Measured gain and its conditions. Source: docs/decisions/0018."""


HUGE_PAGES = "glibc-hugepages"
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
            id=HUGE_PAGES,
            text="let the C library's malloc ask for huge pages: GLIBC_TUNABLES=glibc.malloc.hugetlb=1 (glibc 2.35 or "
            "newer, transparent_hugepage madvise or always)",
            variables={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
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
