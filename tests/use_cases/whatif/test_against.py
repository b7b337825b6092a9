"""Another version of the script: a file, or a commit of its repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from stepscope.tables.errors import UsageError
from stepscope.use_cases.whatif import against

WHO = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    """Run git in a repository."""
    done = subprocess.run(["git", "-C", str(folder), *WHO, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose script was slow in its first commit, and has a hook that would leave a file."""
    root = tmp_path / "my project"
    (root / "sub").mkdir(parents=True)
    git(tmp_path, "init", "-q", str(root))
    (root / "other.txt").write_text("x")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "Nothing yet")
    script = root / "sub" / "train.py"
    script.write_text("slow\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "Slow")
    script.write_text("fast\n")
    git(root, "commit", "-q", "-a", "-m", "Fast")
    hook = root / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/hook-ran'\n")
    hook.chmod(0o755)
    return root


def command(repository: Path) -> tuple[str, ...]:
    """The command line of the job."""
    return ("python", str(repository / "sub" / "train.py"), "--epochs", "2")


def test_a_commit_is_checked_out_and_removed(repository: Path, tmp_path: Path) -> None:
    """The script runs at its path in the commit; afterwards nothing is left, and no hook has run."""
    argv = command(repository)
    other = against.find(argv, "HEAD~1")
    assert other.name == git(repository, "rev-parse", "HEAD~1")
    assert other.text.endswith(" Slow")
    with against.checked_out(argv, other) as words:
        script = Path(words[1])
        assert words == ("python", str(script), "--epochs", "2")
        assert script.read_text() == "slow\n"
        assert script.parts[-3:] == ("my project", "sub", "train.py")
    assert not script.parent.parent.parent.exists()
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert not (tmp_path / "hook-ran").exists()
    assert (repository / "sub" / "train.py").read_text() == "fast\n"


def test_it_is_removed_on_ctrl_c(repository: Path) -> None:
    argv = command(repository)
    seen: list[Path] = []

    def interrupted() -> None:
        with against.checked_out(argv, against.find(argv, "HEAD~1")) as words:
            seen.append(Path(words[1]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not seen[0].exists()
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_a_half_made_worktree_is_forgotten_and_others_stay(repository: Path, tmp_path: Path) -> None:
    """One that the checkout left behind is removed from the repository; the user's own on a missing disk is not."""
    away = tmp_path / "away"
    git(repository, "worktree", "add", "-q", "--detach", str(away))
    away.rename(tmp_path / "unmounted")
    argv = command(repository)
    with against.checked_out(argv, against.find(argv, "HEAD")) as words:
        (Path(words[1]).parent.parent / ".git").unlink()
    left = git(repository, "worktree", "list", "--porcelain")
    assert str(away) in left
    assert "stepscope-against-" not in left


def test_a_file_is_taken_as_it_is(tmp_path: Path) -> None:
    faster = tmp_path / "faster.py"
    faster.write_text("")
    argv = ("python", "-u", "train.py", "x")
    with against.checked_out(argv, against.find(argv, str(faster))) as words:
        assert words == ("python", "-u", str(faster), "x")


def test_without_another_version_there_is_no_command() -> None:
    with against.checked_out(("python", "train.py"), None) as words:
        assert words == ()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("nothing", "--against nothing: no such file, and no such commit in .*; expected another version"),
        ("--help", "no such file, and no such commit"),
        ("HEAD~2", "--against HEAD~2: this commit has no sub/train.py"),
    ],
)
def test_what_is_no_version_of_the_script(repository: Path, name: str, error: str) -> None:
    with pytest.raises(UsageError, match=error) as caught:
        against.find(command(repository), name)
    assert "\n" not in str(caught.value)


def test_without_a_repository(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    with pytest.raises(UsageError, match=r"train\.py is in no git repository"):
        against.find(("python", str(script)), "HEAD")


def test_a_module_cannot_be_replaced() -> None:
    with pytest.raises(UsageError, match="names no script"):
        against.find(("python", "-m", "train"), "HEAD")
