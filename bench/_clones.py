"""Clones of public projects: where they are in a folder, what a commit contains, which lines a fix changed.

Nothing is fetched here: the folder is given. A project ``owner/name`` is searched as ``owner+name``, ``owner/name``,
``owner__name``, ``owner-name`` and ``name``, each a bare repository, a work tree, or a folder with one in ``repo``.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "STEPSCOPE_CLONES"
"""Environment variable with the folder of clones, used if none is given."""
WANTED = (".py", ".ipynb", ".txt", ".toml", ".cfg", ".yml", ".yaml")
"""Patterns of files that a check reads: sources, and files that pin versions."""
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Lines that one part of a fix changed, from 1, as (first, number); a number of 0 is a place between lines."""

    old: tuple[int, int]
    new: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Clone:
    """A repository to read from."""

    git_dir: Path

    def git(self, *words: str, feed: bytes = b"") -> bytes:
        """Output of a git command; ``feed`` is its standard input.

        Raises:
            RuntimeError: it failed.
        """
        done = subprocess.run(
            ["git", "--git-dir", str(self.git_dir), *words],
            input=feed,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr.decode(errors="replace").strip())
        return done.stdout

    def date(self, commit: str) -> str:
        """The commit's date, YYYY-MM-DD."""
        return self.git("log", "-1", "--format=%cd", "--date=short", commit).decode().strip()

    def files(self, commit: str) -> list[str]:
        """Paths of all files of a commit."""
        return self.git("-c", "core.quotePath=off", "ls-tree", "-r", "--name-only", commit).decode().splitlines()

    def resolve(self, commit: str, path: str) -> str:
        """The full path of a file or folder given by its end; unchanged if nothing or several match."""
        files = self.files(commit)
        if any(name == path or name.startswith(f"{path}/") for name in files):
            return path
        ends = [name for name in files if name.endswith(f"/{path}")]
        return ends[0] if len(ends) == 1 else path

    def export(self, commit: str, folder: Path) -> int:
        """Write the sources of a commit, and the files that pin versions, below a folder. Returns the number of files.

        Snapshots may lack large files: missing ones are left out.
        """
        listed = self.git("ls-tree", "-r", "-z", commit).decode(errors="surrogateescape").split("\0")
        wanted = []
        for line in listed:
            head, _, path = line.partition("\t")
            if path.endswith(WANTED) and head.split()[1] == "blob" and not head.startswith("120000"):
                wanted.append((head.split()[2], path))
        stream = io.BytesIO(self.git("cat-file", "--batch", feed="".join(f"{sha}\n" for sha, _ in wanted).encode()))
        written = 0
        for _, path in wanted:
            words = stream.readline().split()
            if words[1] == b"missing":
                continue
            content = stream.read(int(words[2]) + 1)[:-1]
            target = folder / path
            if not target.resolve().is_relative_to(folder.resolve()):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            written += 1
        return written

    def hunks(self, before: str, after: str, path: str) -> dict[str, list[Hunk]]:
        """Changes below a path, by file, with no lines of context."""
        names = self.git("-c", "core.quotePath=off", "diff", "--name-only", before, after, "--", path).decode()
        found: dict[str, list[Hunk]] = {}
        for name in names.splitlines():
            text = self.git("diff", "-U0", before, after, "--", name).decode(errors="replace")
            found[name] = [
                Hunk(old=(int(a), int(b or 1)), new=(int(c), int(d or 1)))
                for a, b, c, d in _HUNK.findall(text)
            ]  # fmt: skip
        return found


def folder_of_clones(given: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The given folder, or the one that the environment names; None if there is none."""
    named = environ.get(VARIABLE, "")
    folder = given or (Path(named) if named else None)
    return folder if folder is not None and folder.is_dir() else None


def find(folder: Path, project: str) -> Clone | None:
    """The clone of ``owner/name`` in a folder; None if it is unavailable."""
    owner, _, name = project.partition("/")
    for candidate in (f"{owner}+{name}", f"{owner}/{name}", f"{owner}__{name}", f"{owner}-{name}", name, f"{name}.git"):
        for inner in (".git", "", "repo/.git", "repo"):
            git_dir = folder / candidate / inner
            if (git_dir / "HEAD").is_file() and (git_dir / "objects").is_dir():
                return Clone(git_dir)
    return None


def has(clone: Clone, commits: Sequence[str]) -> str:
    """The first of some commits that is missing; "" if all are there."""
    for commit in commits:
        try:
            clone.git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
        except RuntimeError:
            return commit
    return ""
