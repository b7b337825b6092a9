"""``make release`` on a copy of this tree: all but the trial of the wheel is real.

The trial installs what the package needs from an index, which a test does not ask.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("Makefile", "pyproject.toml", "README.md", "LICENSE", ".gitignore")
FOLDERS = ("src", "scripts", "changes", "requirements")
CHANGELOG = "# Changelog\n\nWords.\n\n## 0.1.0 (unreleased)\n\n- All of it is new.\n"
TRIAL = "#!/bin/sh\n[ ! -e bad-trial.txt ] && echo tried $1\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A clean repository with the package, its scripts and one change."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not here: make venv")
    tree = tmp_path / "copy"
    tree.mkdir()
    for name in COPIED:
        shutil.copy(ROOT / name, tree)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for change in (tree / "changes").glob("*.md"):
        if change.name != "README.md":
            change.unlink()
    (tree / "CHANGELOG.md").write_text(CHANGELOG)
    (tree / "src" / "stepscope" / "_version.py").write_text('"""The version."""\n\n__version__ = "0.1.0"\n')
    (tree / "changes" / "faster.md").write_text("- It is faster now.\n")
    (tree / "scripts" / "try-wheel.sh").write_text(TRIAL)
    python = tree / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (tree / ".venv" / ".stamp").touch()
    git(tree, "init", "--quiet")
    commit(tree)
    return tree


def git(tree: Path, *words: str) -> str:
    """What git prints, as a user with a name."""
    who = ("-c", "user.name=T", "-c", "user.email=t@localhost")
    return subprocess.run(["git", *who, *words], cwd=tree, check=True, capture_output=True, text=True).stdout


def commit(tree: Path) -> None:
    """All that is there."""
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--allow-empty", "--message", "All")


def release(tree: Path, version: str) -> subprocess.CompletedProcess[str]:
    """``make release``, without an index."""
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # pip reads this 0 as: no isolation
    found = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        ["make", "release", f"VERSION={version}"],
        cwd=tree,
        env={**os.environ, **offline, **found},
        capture_output=True,
        text=True,
        check=False,
    )


def names(archive: Path) -> Iterator[str]:
    """Files of a wheel."""
    with zipfile.ZipFile(archive) as opened:
        yield from opened.namelist()


def test_a_release_is_made_and_nothing_is_published(tree: Path) -> None:
    """The changelog and the version are in the wheel and the sdist; the commit and the tag are left to do."""
    done = release(tree, "0.2.0")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tree / "dist").iterdir()) == [
        "stepscope-0.2.0-py3-none-any.whl",
        "stepscope-0.2.0.tar.gz",
    ]
    assert "tried dist/stepscope-0.2.0-py3-none-any.whl" in done.stdout
    assert "git tag --annotate v0.2.0" in done.stdout
    assert "twine upload dist/stepscope-0.2.0-py3-none-any.whl dist/stepscope-0.2.0.tar.gz" in done.stdout
    assert sorted(git(tree, "status", "--porcelain").splitlines()) == [
        " M CHANGELOG.md",
        " M src/stepscope/_version.py",
        "D  changes/faster.md",
    ]
    assert git(tree, "tag") == ""
    assert git(tree, "log", "--format=%s") == "All\n"
    changelog = (tree / "CHANGELOG.md").read_text()
    assert changelog.index("## 0.2.0 (") < changelog.index("- It is faster now.") < changelog.index("## 0.1.0 (")
    held = set(names(tree / "dist" / "stepscope-0.2.0-py3-none-any.whl"))
    assert {"stepscope/agent/bootstrap.py", "stepscope/assets/index.html"} <= held
    assert not [name for name in held if not name.startswith(("stepscope/", "stepscope-0.2.0.dist-info/"))]


def test_the_first_release_dates_the_section_that_waits(tree: Path) -> None:
    """It gets no second heading; changes stand at its end, below a line that says so."""
    subprocess.run(["scripts/changelog.sh", "0.1.0"], cwd=tree, check=True, capture_output=True)
    after = (tree / "CHANGELOG.md").read_text()
    date = after.partition("## 0.1.0 (")[2][:10]
    dated = CHANGELOG.replace("(unreleased)", f"({date})")
    assert after == f"{dated}\n**Last changes**\n\n- It is faster now.\n"
    (tree / "CHANGELOG.md").write_text(CHANGELOG)
    subprocess.run(["scripts/changelog.sh", "0.1.0"], cwd=tree, check=True, capture_output=True)
    assert (tree / "CHANGELOG.md").read_text() == dated


def test_refusals(tree: Path) -> None:
    """In one line each, with the tree as it was."""
    git(tree, "rm", "--quiet", "changes/faster.md")
    commit(tree)
    git(tree, "tag", "v0.10.0")
    git(tree, "tag", "v0.9.0")
    for version, refusal in (
        ("", "a version has the form X.Y.Z: make release VERSION=0.2.0 (got '')"),
        ("0.2", "a version has the form X.Y.Z: make release VERSION=0.2.0 (got '0.2')"),
        ("0.0.9", "0.0.9 is not newer than 0.1.0, the version of the tree"),
        ("0.1.0", "0.1.0 is not newer than the tag v0.10.0"),
        ("0.9.1", "0.9.1 is not newer than the tag v0.10.0"),
        ("0.11.0", "the changelog would have no entry: write changes/NAME.md first"),
    ):
        done = release(tree, version)
        assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"release: {refusal}")
        assert git(tree, "status", "--porcelain") == ""
        assert not (tree / "dist").exists()
    (tree / "src" / "stepscope" / "more.py").touch()
    done = release(tree, "0.2.0")
    assert done.stderr.splitlines()[0] == (
        "release: the tree is not clean: commit or remove src/stepscope/more.py first"
    )


def test_a_wheel_that_does_not_run_leaves_the_tree_as_it_was(tree: Path) -> None:
    """Changelog, changes and version come back."""
    (tree / "bad-trial.txt").touch()
    commit(tree)
    done = release(tree, "0.2.0")
    assert "release: make wheel-check ended with code 2" in done.stderr
    assert git(tree, "status", "--porcelain") == ""


def test_contents_of_the_files_are_checked(tmp_path: Path) -> None:
    """A wheel or sdist with a test, foreign data or without the agent is named for what is wrong with it."""
    spec = importlib.util.spec_from_file_location("release", ROOT / "scripts" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    wheel = tmp_path / "w.whl"
    tracked = {*module.NEEDED, "stepscope/assets/build.json", "stepscope/tests/data.bin"}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in tracked - {"stepscope/agent/bootstrap.py", "stepscope/assets/build.json"}:
            archive.writestr(name, "")
        archive.writestr("stepscope/assets/build.json", '{"made": {"main.js": ""}}')
        archive.writestr("images.npz", "")
    assert module.wrong_in_wheel(wheel, tracked) == [
        "w.whl lacks stepscope/agent/bootstrap.py",
        "w.whl lacks stepscope/assets/main.js",
        "w.whl holds images.npz, which is no tracked file of the package",
        "w.whl holds the test stepscope/tests/data.bin",
    ]
    sdist = tmp_path / "s.tar.gz"
    with tarfile.open(sdist, "w:gz") as packed:
        for name in (*module.BESIDES_SOURCE, "tests/data/images.npz"):
            packed.addfile(tarfile.TarInfo(f"stepscope-1/{name}"))
    assert module.wrong_in_sdist(sdist, {"stepscope/py.typed"}) == [
        "s.tar.gz lacks src/stepscope/py.typed",
        "s.tar.gz holds tests/data/images.npz",
    ]
