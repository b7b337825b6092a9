"""Which malloc serves a process is found as its dynamic linker found it."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from stepscope.launcher import apply
from stepscope.model.report.remedies import C_LIBRARY, ENVIRONMENT_REMEDIES
from stepscope.native.memory import allocator
from stepscope.tables.allocator_info import AllocatorInfo
from stepscope.tables.errors import UsageError

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


@pytest.mark.parametrize("name", ["jemalloc-keep", "glibc-keep", C_LIBRARY, "thp-always"])
def test_the_line_to_paste_does_what_the_remedy_does(name: str) -> None:
    """A shell that runs it starts a process with the same environment, whatever the user had set before."""
    remedy = ENVIRONMENT_REMEDIES[name]
    if remedy.built and not HAS_CC:
        pytest.skip("no C compiler")
    own = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "MALLOC_CONF": "narenas:2"}
    own["LD_PRELOAD"] = JEMALLOC if HAS_JEMALLOC else ""
    line = apply.shell_line(name, own)
    told = subprocess.run(["sh", "-c", f"{line}\nexec env -0"], env=own, capture_output=True, text=True, check=True)
    found = dict(pair.partition("=")[::2] for pair in told.stdout.split("\0") if pair)
    wanted = apply.environment([name], own)
    assert {key: found.get(key) for key in wanted} == wanted


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
        own = f"{known.preload}:libstdc++.so.6" if known.alone else known.preload
        assert after["LD_PRELOAD"] == f"{own}:libother.so"
    else:
        with pytest.raises(UsageError, match=known.package):
            apply.environment([known.id], {})


FAKE = """
#include <stddef.h>
extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
int mallctl(void) { return 0; }
void *malloc(size_t size) { return __libc_malloc(size); }
void free(void *at) { __libc_free(at); }
"""
MAIN = """
#include <stdio.h>
extern int mallctl(void);
int main(void) { printf("up %d\\n", mallctl()); fflush(stdout); return getchar(); }
"""
HAS_CC = shutil.which("gcc") is not None


def _linked(folder: Path, *, static: bool) -> Path:
    """A program that is linked with something that has jemalloc's marks."""
    (folder / "fake.c").write_text(FAKE)
    (folder / "main.c").write_text(MAIN)
    program, library = folder / "program", folder / JEMALLOC
    if not static:
        made: list[str | Path] = [
            "gcc",
            "-shared",
            "-fPIC",
            f"-Wl,-soname,{JEMALLOC}",
            "-o",
            library,
            folder / "fake.c",
        ]
        subprocess.run(made, check=True)
    other = folder / "fake.c" if static else library
    command: list[str | Path] = ["gcc", "-rdynamic", f"-Wl,-rpath,{folder}", "-o", program, folder / "main.c", other]
    subprocess.run(command, check=True)
    return program


def _of_program(program: Path, environment: Mapping[str, str]) -> tuple[str, str]:
    process = subprocess.Popen(
        [program], env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        found = allocator.look(process.pid)
    assert found is not None
    return found.name, found.how


@pytest.mark.skipif(not HAS_CC, reason="no C compiler")
def test_the_c_library_comes_before_one_that_a_program_is_linked_with(tmp_path: Path) -> None:
    """LD_PRELOAD=libc.so.6 takes its place, as the remedy says."""
    program = _linked(tmp_path, static=False)
    assert _of_program(program, {}) == ("jemalloc", "linked")
    name, _ = _of_program(program, apply.environment([C_LIBRARY], {}))
    assert name == "glibc"


@pytest.mark.skipif(not HAS_CC, reason="no C compiler")
def test_one_in_the_program_itself_comes_before_all(tmp_path: Path) -> None:
    """No variable changes that."""
    program = _linked(tmp_path, static=True)
    assert (
        _of_program(program, {}) == _of_program(program, apply.environment([C_LIBRARY], {})) == ("jemalloc", "static")
    )


def test_other_allocators_are_no_longer_preloaded() -> None:
    """What else is preloaded stays."""
    before = {"LD_PRELOAD": f"/opt/{JEMALLOC} libother.so:libtcmalloc_minimal.so.4"}
    assert apply.environment([C_LIBRARY], before)["LD_PRELOAD"] == "libc.so.6:libstdc++.so.6:libother.so"
