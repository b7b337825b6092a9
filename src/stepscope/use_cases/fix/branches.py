"""``--branch``: the patch as one commit on a new ref. The index, the work tree, the stash and hooks are not touched.

The tree is made in an index of its own in a temporary folder. ``update-ref`` makes the ref only if there is none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.launcher import scratch
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_GIT_S = 120.0
"""Time for one command of git."""
_AS = {
    "GIT_AUTHOR_NAME": "stepscope",
    "GIT_AUTHOR_EMAIL": "stepscope@localhost",
    "GIT_COMMITTER_NAME": "stepscope",
    "GIT_COMMITTER_EMAIL": "stepscope@localhost",
}
"""Who commits where git does not know the user."""


def top_of(folder: Path) -> Path | None:
    """The top folder of the repository that a folder lies in; None if it lies in none."""
    if shutil.which("git") is None:
        return None
    found = _git(folder, "rev-parse", "--show-toplevel")
    return Path(found.stdout.strip()) if found.returncode == 0 and found.stdout.strip() else None


def check(top: Path | None, branch: str, files: Mapping[str, bytes]) -> None:
    """Refuse a branch that cannot be made.

    Args:
        top: of the repository.
        branch: its name.
        files: contents by absolute path of the files that the patch may change, as they are on disk.

    Raises:
        UsageError: there is no repository, the name is none or taken, or a file is not as the last commit has it.
    """
    if top is None:
        raise UsageError(f"--branch {branch}: the program lies in no git repository; write the patch with -o PATH")
    if _git(top, "check-ref-format", "--branch", branch).returncode or branch.startswith("-"):
        raise UsageError(f"--branch {branch}: no name of a branch")
    if not _git(top, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}").returncode:
        raise UsageError(f"--branch {branch}: it exists already; expected a new name")
    if _git(top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").returncode:
        raise UsageError(f"--branch {branch}: the repository has no commit yet")
    for path, data in files.items():
        name = Path(path).relative_to(top).as_posix()
        mine = _git(top, "hash-object", f"--path={name}", "--stdin", data=data).stdout.strip()
        if mine != _git(top, "rev-parse", "--verify", "--quiet", f"HEAD:{name}").stdout.strip():
            raise UsageError(f"--branch {branch}: {name} is not as the last commit has it; commit it first")


def make(top: Path, branch: str, files: Mapping[str, bytes], message: str) -> str:
    """Make the branch with new contents of files on top of the last commit; return the commit.

    Raises:
        UsageError: git refuses.
    """
    with tempfile.TemporaryDirectory(prefix=scratch.prefix("fix")) as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        head = _must(top, branch, "rev-parse", "HEAD")
        _must(top, branch, "read-tree", head, more=index)
        for path, data in sorted(files.items()):
            name = Path(path).relative_to(top).as_posix()
            mode = _must(top, branch, "ls-tree", head, "--", name).partition(" ")[0]
            blob = _must(top, branch, "hash-object", "-w", f"--path={name}", "--stdin", data=data)
            _must(top, branch, "update-index", "--cacheinfo", f"{mode},{blob},{name}", more=index)
        tree = _must(top, branch, "write-tree", more=index)
    known = _git(top, "var", "GIT_COMMITTER_IDENT").returncode == 0
    commit = _must(top, branch, "commit-tree", tree, "-p", head, "-m", message, more={} if known else _AS)
    _must(top, branch, "update-ref", f"refs/heads/{branch}", commit, "0" * len(commit))
    return commit


def _must(top: Path, branch: str, *words: str, data: bytes = b"", more: Mapping[str, str] | None = None) -> str:
    done = _git(top, *words, data=data, more=more)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["git says nothing"])[-1]
        raise UsageError(f"--branch {branch}: git {words[0]}: {last}")
    return done.stdout.strip()


def _git(
    folder: Path, *words: str, data: bytes = b"", more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run git in a folder, without hooks, in a process group that the terminal's Ctrl-C does not reach."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | dict(more or {})
    command = ["git", "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-C", str(folder), *words]
    try:
        done = subprocess.run(
            command,
            env=environment,
            input=data,
            capture_output=True,
            timeout=_GIT_S,
            check=False,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"git {words[0]} in {folder}: {error}") from error
    return subprocess.CompletedProcess(
        command, done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    )
