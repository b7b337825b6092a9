"""Which malloc serves a process is found as its dynamic linker found it."""

from __future__ import annotations

import ctypes.util
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from stepscope.collector.launch import apply
from stepscope.collector.memory import allocator
from stepscope.errors import UsageError
from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES
from stepscope.model.session.session import AllocatorInfo

JEMALLOC = "libjemalloc.so.2"
HAS_JEMALLOC = ctypes.util.find_library("jemalloc") == JEMALLOC
WAITS = "import sys; print('up', flush=True); sys.stdin.read()"


def of(environment: Mapping[str, str]) -> AllocatorInfo:
    """The allocator of a Python that was started with these variables."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", WAITS],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        found = allocator.look(process.pid)
    assert found is not None
    return found


def test_the_c_librarys_own() -> None:
    """A plain Python runs on the C library's malloc, with its settings; others' are left out."""
    found = of({"MALLOC_ARENA_MAX": "2", "MIMALLOC_VERBOSE": "0", "TF_ENABLE_ONEDNN_OPTS": "0"})
    assert (found.name, found.how) in {("glibc", "default"), ("musl", "default")}
    assert found.settings.get("MALLOC_ARENA_MAX") == "2"
    assert "MIMALLOC_VERBOSE" not in found.settings
    assert found.pool == ""


@pytest.mark.skipif(not HAS_JEMALLOC, reason=f"{JEMALLOC} is not installed")
def test_a_preloaded_one() -> None:
    """LD_PRELOAD wins over the C library."""
    found = of({"LD_PRELOAD": JEMALLOC, "MALLOC_CONF": "dirty_decay_ms:0"})
    assert (found.name, found.how) == ("jemalloc", "preloaded")
    assert found.library.endswith(JEMALLOC)
    assert found.settings["MALLOC_CONF"] == "dirty_decay_ms:0"


def test_a_process_that_is_gone() -> None:
    """Nothing is said of it."""
    process = subprocess.Popen(["true"])
    process.wait()
    assert allocator.look(process.pid) is None


def test_remedies_change_what_they_say_and_nothing_else() -> None:
    """Lists are added to behind the user's words, other variables are set, the rest stays."""
    before = {"MALLOC_CONF": "dirty_decay_ms:0", "HOME": "/x", "MALLOC_ARENA_MAX": "8"}
    after = apply.environment(["jemalloc-keep", "glibc-keep"], before)
    assert after["MALLOC_CONF"].startswith("dirty_decay_ms:0,dirty_decay_ms:10000")
    assert after["MALLOC_ARENA_MAX"] == "1"
    assert after["HOME"] == "/x"
    assert before == {"MALLOC_CONF": "dirty_decay_ms:0", "HOME": "/x", "MALLOC_ARENA_MAX": "8"}
    assert apply.environment([], before) == before


def test_a_script_may_undo_a_remedy() -> None:
    """What the job's own processes do not have is named."""
    given = apply.environment(["jemalloc-keep"], {})
    assert apply.undone(["jemalloc-keep"], given) == []
    assert apply.undone(["jemalloc-keep"], {"MALLOC_CONF": "dirty_decay_ms:0"}) == ["MALLOC_CONF"]
    assert apply.undone(["preload-jemalloc"], given) == ["LD_PRELOAD"]


def test_an_unknown_remedy_is_one_clear_line() -> None:
    """It names what there is."""
    with pytest.raises(UsageError, match=r"--apply nothing: unknown remedy; expected one of onednn-pool"):
        apply.environment(["nothing"], {})


@pytest.mark.parametrize("remedy", [r for r in ENVIRONMENT_REMEDIES.values() if r.preload], ids=lambda r: r.id)
def test_a_library_is_preloaded_first_or_asked_for(remedy: object) -> None:
    """A library that is installed comes before the user's; one that is not names its package."""
    known = next(r for r in ENVIRONMENT_REMEDIES.values() if r == remedy)
    stem = known.preload.removeprefix("lib").partition(".so")[0]
    if ctypes.util.find_library(stem) == known.preload:
        after = apply.environment([known.id], {"LD_PRELOAD": "libother.so"})
        assert after["LD_PRELOAD"] == f"{known.preload}:libother.so"
    else:
        with pytest.raises(UsageError, match=known.package):
            apply.environment([known.id], {})
