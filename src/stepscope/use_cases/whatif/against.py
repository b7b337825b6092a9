"""``--against``: another version of the script, as a file, or as a commit of its repository.

A commit is checked out into a temporary worktree, which is removed whatever happens (if this process is
killed: by the next collector, ``launcher.scratch``); no hook of the repository runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.launcher import scratch
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_GIT_S = 600.0
"""Time for one command of git: a checkout of a large repository takes minutes."""


class Other(Struct, frozen=True, kw_only=True):
    """The other version, found but not checked out."""

    at: int
    """Place of the script in the command line."""
    name: str
    """File, or full name of the commit."""
    text: str
    """What it is, for people."""
    repository: Path | None = None
    """Top folder of the repository, for a commit."""
    path: Path | None = None
    """Path of the script in the repository, for a commit."""


def find(argv: Sequence[str], against: str) -> Other:
    """The other version that ``against`` names.

    Raises:
        UsageError: it is neither a file nor a commit that has the script, or the command line names no script.
    """
    at = next((i for i, word in enumerate(argv) if word.endswith(".py")), None)
    if at is None:
        raise UsageError(f"--against {against}: the command line names no script that it could replace")
    if Path(against).is_file():
        return Other(at=at, name=against, text=against)
    return _commit(Path(argv[at]), at, against)


@contextmanager
def checked_out(argv: Sequence[str], other: Other | None) -> Iterator[tuple[str, ...]]:
    """The command line with the other script in the place of the first; () without one.

    Raises:
        UsageError: the commit cannot be checked out.
    """
    if other is None:
        yield ()
    elif other.repository is None or other.path is None:
        yield _replaced(argv, other, other.name)
    else:
        with _worktree(other.repository, other.name) as folder:
            yield _replaced(argv, other, str(folder / other.path))


def _replaced(argv: Sequence[str], other: Other, script: str) -> tuple[str, ...]:
    return (*argv[: other.at], script, *argv[other.at + 1 :])


def _commit(script: Path, at: int, against: str) -> Other:
    expected = "expected another version of the script, or a commit of its git repository"
    if shutil.which("git") is None:
        raise UsageError(f"--against {against}: no such file, and there is no git; {expected}")
    folder = script.absolute().parent
    top = _git(folder, "rev-parse", "--show-toplevel").stdout.strip()
    if not top:
        raise UsageError(f"--against {against}: no such file, and {script} is in no git repository; {expected}")
    commit = _git(
        folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{against}^{{commit}}"
    ).stdout.strip()
    if not commit:
        raise UsageError(f"--against {against}: no such file, and no such commit in {top}; {expected}")
    path = Path(os.path.realpath(script)).relative_to(os.path.realpath(top))
    if _git(Path(top), "cat-file", "-e", f"{commit}:{path.as_posix()}").returncode:
        raise UsageError(f"--against {against}: this commit has no {path.as_posix()}")
    subject = _git(Path(top), "show", "--no-patch", "--format=%h %s", commit).stdout.strip()
    return Other(at=at, name=commit, text=f"commit {subject}", repository=Path(top), path=path)


@contextmanager
def _worktree(repository: Path, commit: str) -> Iterator[Path]:
    """The repository at a commit, in a temporary folder."""
    place = Path(tempfile.mkdtemp(prefix=scratch.prefix("against")))
    tree = place / repository.name
    try:
        made = _git(repository, "worktree", "add", "--detach", "--force", str(tree), commit)
        if made.returncode:
            last = (made.stderr.strip().splitlines() or ["git says nothing"])[-1]
            raise UsageError(f"--against {commit[:12]}: it cannot be checked out: {last}")
        yield tree
    finally:
        removed = _git(repository, "worktree", "remove", "--force", "--force", str(tree))
        shutil.rmtree(place, ignore_errors=True)
        if removed.returncode:
            _forget(repository, tree)


def _forget(repository: Path, tree: Path) -> None:
    """Remove what the repository knows of a worktree that is half made; ``git worktree prune`` would remove others."""
    common = _git(repository, "rev-parse", "--git-common-dir").stdout.strip()
    for entry in (repository / common / "worktrees").glob("*"):
        try:
            ours = (entry / "gitdir").read_text("utf-8").startswith(str(tree))
        except OSError:
            continue
        if ours:
            shutil.rmtree(entry, ignore_errors=True)


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run git in a folder, without hooks, and in a process group that the terminal's Ctrl-C does not reach."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-c", f"core.hooksPath={os.devnull}", "-C", str(folder), *words]
    try:
        return subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_S,
            check=False,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"git {words[0]} in {folder}: {error}") from error
