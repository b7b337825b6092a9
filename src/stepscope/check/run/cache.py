"""The cache of each file's results between runs, invalidated if anything they depend on has changed.

A file's results depend on its text, on the files consulted for it, on files that were looked for but missing, and on
the callers of its functions, that is, on all files that contain certain words. Each file stores only what was consulted
on its own behalf; a change in one file invalidates all files that consulted it, directly or through others.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from stepscope._version import __version__
from stepscope.check.run.run import FileResult
from stepscope.check.source import texts
from stepscope.check.source.modules import ModuleDependencies
from stepscope.check.source.source import code

RACY_NS = 2_000_000_000
"""Time within which a file written before it was read may change again without a new time stamp."""


class CachedFile(msgspec.Struct, frozen=True, array_like=True):
    """The cached results of one file."""

    size: int
    mtime_ns: int
    digest: str
    facts: texts.Facts
    concerned: bool
    modules: frozenset[str]
    missing: frozenset[str]
    asked: dict[str, str]
    """Words whose callers or importers were looked for, each with a digest of the files that contain it."""
    result: FileResult


class CacheContent(msgspec.Struct, frozen=True):
    """The content of a cache file."""

    signature: str
    entries: dict[str, CachedFile]


class State(Struct, frozen=True):
    """The current state of a file."""

    size: int
    mtime_ns: int
    digest: str
    facts: texts.Facts


def signature(*parts: object) -> str:
    """A signature of everything that applies to all files: the rules' own sources, versions, settings."""
    digest = hashlib.sha256(repr((__version__, sys.version_info[:3], parts)).encode())
    folder = Path(__file__).parent.parent
    for source in sorted(folder.rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def place(paths: Iterable[Path]) -> Path:
    """The path of the cache file for the checked paths: in the user's cache folder, never in the project."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = hashlib.sha256("\n".join(str(path.resolve()) for path in paths).encode()).hexdigest()[:24]
    return base / "stepscope" / "check" / f"{name}.bin"


def load(path: Path, wanted: str) -> dict[str, CachedFile]:
    """The entries of a cache; none if it is missing, damaged or has another signature."""
    try:
        kept = msgspec.msgpack.decode(path.read_bytes(), type=CacheContent)
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return kept.entries if kept.signature == wanted else {}


def save(path: Path, wanted: str, entries: dict[str, CachedFile]) -> None:
    """Write a cache; a failure to write is ignored."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_bytes(msgspec.msgpack.encode(CacheContent(wanted, entries)))
        fresh.replace(path)
    except OSError:
        return


def states(paths: Iterable[str], entries: Mapping[str, CachedFile]) -> dict[str, State]:
    """The current state of files; a file whose size and time match its entry is not read."""
    found = {}
    for path in paths:
        try:
            stat = Path(path).stat()
            entry = entries.get(path)
            if entry is not None and (entry.size, entry.mtime_ns) == (stat.st_size, stat.st_mtime_ns):
                found[path] = State(entry.size, entry.mtime_ns, entry.digest, entry.facts)
                continue
            data = Path(path).read_bytes()
        except OSError:
            found[path] = State(-1, -1, "", texts.Facts())
            continue
        racy = time.time_ns() - stat.st_mtime_ns < RACY_NS
        digest = hashlib.sha256(data).hexdigest()
        found[path] = State(len(data), -1 if racy else stat.st_mtime_ns, digest, texts.facts(code(path, data)))
    return found


def callers(now: Mapping[str, State], words: Iterable[str]) -> dict[str, str]:
    """For each word, a digest of the names and contents of the files that call or import it."""
    wanted = set(words)
    holders: dict[str, list[str]] = {word: [] for word in wanted}
    for path in sorted(now):
        state = now[path]
        for word in (state.facts.called | state.facts.imported) & wanted:
            holders[word].append(f"{path}:{state.digest}")
    return {word: hashlib.sha256("\n".join(held).encode()).hexdigest()[:16] for word, held in holders.items()}


def stale(now: Mapping[str, State], entries: Mapping[str, CachedFile]) -> set[str]:
    """The files that must be checked again."""
    asked = callers(now, {word for entry in entries.values() for word in entry.asked})
    dirty = set()
    concerned = texts.concerned({path: state.facts for path, state in now.items()})
    for path, state in now.items():
        entry = entries.get(path)
        if (
            entry is None
            or entry.digest != state.digest
            or entry.concerned != (path in concerned)
            or not entry.missing.isdisjoint(now)
            or any(asked[word] != digest for word, digest in entry.asked.items())
        ):
            dirty.add(path)
    gone = set(entries) - set(now)
    lookers: dict[str, list[str]] = {}
    for path, entry in entries.items():
        for module in entry.modules:
            lookers.setdefault(module, []).append(path)
    todo = [*dirty, *gone]
    while todo:
        for looker in lookers.get(todo.pop(), ()):
            if looker not in dirty and looker in now:
                dirty.add(looker)
                todo.append(looker)
    return dirty


def updated(
    now: Mapping[str, State],
    entries: Mapping[str, CachedFile],
    results: Iterable[FileResult],
    looks: Mapping[str, ModuleDependencies],
) -> dict[str, CachedFile]:
    """The entries after a check: checked files are replaced; what other files were also asked is added to theirs."""
    fresh = {result.path: result for result in results}
    asked = callers(now, {word for more in looks.values() for word in more.words})
    concerned = texts.concerned({path: state.facts for path, state in now.items()})
    made = {}
    for path, state in now.items():
        old = entries.get(path)
        result = fresh.get(path)
        if result is None:
            if old is None:
                continue
            result = old.result
        more = looks.get(path) or ModuleDependencies()
        keep = old if old is not None and path not in fresh else None
        made[path] = CachedFile(
            size=state.size,
            mtime_ns=state.mtime_ns,
            digest=state.digest,
            facts=state.facts,
            concerned=path in concerned,
            modules=frozenset(more.modules) | (keep.modules if keep else frozenset()),
            missing=frozenset(more.missing) | (keep.missing if keep else frozenset()),
            asked={**(keep.asked if keep else {}), **{word: asked[word] for word in more.words}},
            result=result,
        )
    return made
