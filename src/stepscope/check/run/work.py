"""Checking many files: in this process, or in several if there is enough to do."""

from __future__ import annotations

import functools
import gc
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from stepscope.check.context import Engine
from stepscope.check.registry import ALL
from stepscope.check.run.run import FileResult, check, unhindered
from stepscope.check.source.modules import ModuleDependencies, Project
from stepscope.check.source.texts import Facts
from stepscope.check.source.versions import Target

PARALLEL_BYTES = 600_000
"""Bytes from which several processes pay off: about 15,000 lines, which take some 0.3 s."""
MAX_PROCESSES = 8
RENEWED_BYTES = 24 << 20
"""Bytes of parsed files after which a process is replaced: trees take some fifty times the size of their text."""


class FilesToCheck(Struct, frozen=True, kw_only=True):
    """The files to check; plain data, for other processes."""

    files: tuple[str, ...]
    """Every file of the project."""
    todo: tuple[str, ...]
    """Files to check."""
    roots: tuple[str, ...]
    codes: tuple[str, ...]
    """Codes of the rules to run."""
    target: Target
    overlay: Mapping[str, bytes] = field(default_factory=dict)
    facts: Mapping[str, Facts] = field(default_factory=dict)
    """Facts about the texts of files for which they are already known."""


class Outcome(Struct, frozen=True):
    """Results in the order of the job's files, and the dependencies of each file's results."""

    results: tuple[FileResult, ...]
    looks: Mapping[str, ModuleDependencies]


def run(job: FilesToCheck, processes: int | None = None) -> Outcome:
    """Check files in as many processes as pay off.

    Args:
        job: what to check.
        processes: maximum number; by default the CPUs available to us, at most eight.
    """
    job = replace(job, facts=_told(job))
    sizes = {path: job.facts[path].size if path in job.facts else _size(path) for path in job.todo}
    count = min(processes or _cpus(), MAX_PROCESSES, len(job.todo))
    if count <= 1 or sum(sizes.values()) < PARALLEL_BYTES:
        return _work(job)
    shares = _shares(job.todo, sizes, count)
    if _can_fork() and sum(sizes.values()) < RENEWED_BYTES:
        return _joined(job, _forked(job, shares))
    with ProcessPoolExecutor(len(shares)) as pool:
        return _joined(job, list(pool.map(_work, [replace(job, todo=share) for share in shares])))


def _told(job: FilesToCheck) -> dict[str, Facts]:
    """Known facts about texts, including notebooks, which are read here because their size does not reveal their code's
    size.
    """
    told = dict(job.facts)
    project = Project(_readers(job), job.roots)
    for path in job.files:
        if path.endswith(".ipynb") and path not in told:
            told[path] = project.told(path)
    return told


def _joined(job: FilesToCheck, outcomes: list[Outcome]) -> Outcome:
    """The outcomes of all shares merged, with results in the order of the job."""
    looks: dict[str, ModuleDependencies] = {}
    for outcome in outcomes:
        for path, more in outcome.looks.items():
            looks.setdefault(path, ModuleDependencies()).add(more)
    by_path = {result.path: result for outcome in outcomes for result in outcome.results}
    return Outcome(tuple(by_path[path] for path in job.todo), looks)


def _can_fork() -> bool:
    """Whether forking is available, and no other thread could be holding a lock."""
    return "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1


def _forked(job: FilesToCheck, shares: list[tuple[str, ...]]) -> list[Outcome]:
    """Parse everything once, then check in processes that share the parsed trees, because files need each other.

    If a process dies, its share is checked here.
    """
    context = multiprocessing.get_context("fork")
    with unhindered():
        project = Project(_readers(job), job.roots)
        project.facts = dict(job.facts)
        for path in job.todo:
            if project.concerned(path):
                project.load(path)
        children = []
        for share in shares[1:]:
            receiver, sender = context.Pipe(duplex=False)
            child = context.Process(target=_child, args=(sender, project, replace(job, todo=share)), daemon=True)
            child.start()
            sender.close()
            children.append((child, receiver, share))
        outcomes = [_checked(project, replace(job, todo=shares[0]))]
        for child, receiver, share in children:
            try:
                outcomes.append(receiver.recv())
            except EOFError:
                outcomes.append(_work(replace(job, todo=share)))
            child.join()
    return outcomes


def _child(sender: Connection, project: Project, job: FilesToCheck) -> None:
    sender.send(_checked(project, job))
    sender.close()


def _checked(project: Project, job: FilesToCheck) -> Outcome:
    """Check files of a project that is already loaded."""
    rules = tuple(rule for rule in ALL if rule.code in job.codes)
    return Outcome(tuple(check(Engine(project, job.target), job.todo, rules)), project.looks)


def _readers(job: FilesToCheck) -> dict[str, Callable[[], bytes]]:
    readers: dict[str, Callable[[], bytes]] = {p: functools.partial(Path.read_bytes, Path(p)) for p in job.files}
    readers.update({path: functools.partial(bytes, content) for path, content in job.overlay.items()})
    return readers


def _work(job: FilesToCheck) -> Outcome:
    """Check files in this process."""
    rules = tuple(rule for rule in ALL if rule.code in job.codes)
    readers = _readers(job)
    results: list[FileResult] = []
    looks: dict[str, ModuleDependencies] = {}
    facts = dict(job.facts)
    todo = list(reversed(job.todo))
    while todo:
        if results:
            gc.collect()  # scopes and bindings hold each other
        project = Project(readers, job.roots)
        project.facts = facts
        results += check(Engine(project, job.target), _some(todo, project), rules)
        for path, more in project.looks.items():
            looks.setdefault(path, ModuleDependencies()).add(more)
    return Outcome(tuple(results), looks)


def _some(todo: list[str], project: Project) -> Iterator[str]:
    """Files from the end of a list, until the project has grown so large that it should be rebuilt."""
    while todo and project.loaded_bytes < RENEWED_BYTES:
        yield todo.pop()


def _shares(paths: tuple[str, ...], sizes: Mapping[str, int], count: int) -> list[tuple[str, ...]]:
    """Shares of about the same size that keep neighbouring files together, because they import each other."""
    total = sum(sizes.values())
    shares: list[list[str]] = [[] for _ in range(count)]
    done = 0
    for path in paths:
        shares[min(count - 1, done * count // max(total, 1))].append(path)
        done += sizes[path]
    return [tuple(share) for share in shares if share]


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
