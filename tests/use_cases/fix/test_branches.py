"""A branch is made of objects and one ref; all else of a repository stays as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from stepscope.tables.errors import UsageError
from stepscope.use_cases.fix import branches

HOOK = "#!/bin/sh\ntouch hook-ran\n"


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture(name="tree")
def _tree(tmp_path: Path) -> Path:
    """A repository in the middle of work: something staged, edited, stashed, with hooks."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.py").write_text("x = 1\n")
    (tmp_path / "src/train.py").chmod(0o755)
    (tmp_path / "other.py").write_text("y = 1\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "first")):
        git(tmp_path, *words)
    (tmp_path / "other.py").write_text("y = 2\n")
    git(tmp_path, "stash", "push", "-q")
    (tmp_path / "other.py").write_text("y = 3\n")
    git(tmp_path, "add", "other.py")
    (tmp_path / "other.py").write_text("y = 4\n")
    for name in ("reference-transaction", "pre-commit", "post-commit", "post-index-change"):
        (tmp_path / ".git/hooks" / name).write_text(HOOK)
        (tmp_path / ".git/hooks" / name).chmod(0o755)
    return tmp_path


def state(tree: Path) -> dict[str, tuple[bytes, int]]:
    """Every file but objects and what names the new branch."""
    found = {path.relative_to(tree).as_posix(): path for path in tree.rglob("*") if path.is_file()}
    return {
        name: (path.read_bytes(), path.stat().st_mtime_ns)
        for name, path in found.items()
        if not name.startswith(".git/objects/") and not name.endswith("refs/heads/fast/er")
    }


def test_only_objects_and_one_ref_are_new(tree: Path) -> None:
    before = state(tree)
    files = {str(tree / "src/train.py"): b"x = 2\n"}
    branches.check(tree, "fast/er", {str(tree / "src/train.py"): b"x = 1\n"})
    commit = branches.make(tree, "fast/er", files, "Apply 1 edit")
    assert state(tree) == before
    assert git(tree, "rev-parse", "fast/er").strip() == commit
    assert git(tree, "rev-parse", "fast/er^") == git(tree, "rev-parse", "HEAD")
    assert git(tree, "show", "fast/er:src/train.py") == "x = 2\n"
    assert git(tree, "diff", "--raw", "HEAD", "fast/er").split()[:2] == [":100755", "100755"]
    assert git(tree, "diff", "--name-only", "HEAD", "fast/er").split() == ["src/train.py"]


def test_a_branch_that_exists_is_refused_however_late_it_comes(tree: Path) -> None:
    git(tree, "branch", "taken")
    with pytest.raises(UsageError, match="exists already"):
        branches.check(tree, "taken", {})
    before = git(tree, "for-each-ref")
    with pytest.raises(UsageError, match="update-ref"):
        branches.make(tree, "taken", {str(tree / "src/train.py"): b"x = 2\n"}, "Apply 1 edit")
    assert git(tree, "for-each-ref") == before


@pytest.mark.parametrize("name", ["a..b", "-x", "a b", "@{1}"])
def test_no_name_of_a_branch(tree: Path, name: str) -> None:
    with pytest.raises(UsageError, match="no name of a branch"):
        branches.check(tree, name, {})


def test_a_file_with_changes_of_its_user_is_refused(tree: Path) -> None:
    with pytest.raises(UsageError, match=r"other\.py is not as the last commit has it"):
        branches.check(tree, "new", {str(tree / "other.py"): b"y = 4\n"})


def test_without_a_repository(tmp_path: Path) -> None:
    assert branches.top_of(tmp_path) is None
    with pytest.raises(UsageError, match="in no git repository"):
        branches.check(None, "new", {})
