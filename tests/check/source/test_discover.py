"""Sessions are evidence: ``check`` reads none of their sources and changes none, whatever they are called."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from stepscope.check.cli.check import check
from stepscope.check.source.discover import discover
from stepscope.check.use_cases import check_fix
from stepscope.model.session.session import Manifest
from stepscope.store import bundle
from stepscope.tables.errors import UsageError
from stepscope.tables.evidence import leads_in

SLOW = b"""import tensorflow as tf
ds = tf.data.Dataset.list_files("*").interleave(tf.data.TFRecordDataset)
"""
MANIFEST = msgspec.json.format(msgspec.json.encode(Manifest(stepscope_version="0.1.0")), indent=1)
KEPT = "captures/sources/000-train.py"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two sessions in it, one of them renamed, and a web page's manifest."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project = tmp_path / "project"
    for session in ("train.stepscope", "experiments/run 7"):
        source = project / session / KEPT
        source.parent.mkdir(parents=True)
        source.write_bytes(SLOW)
        (project / session / "manifest.json").write_bytes(MANIFEST)
    (project / "web").mkdir()
    (project / "web/manifest.json").write_text('{"name": "a page", "manifest_version": 3}')
    (project / "web/train.py").write_bytes(SLOW)
    (project / "train.py").write_bytes(SLOW)
    return project


def call(*args: str | Path) -> Result:
    """Run the command; errors of ours are raised."""
    return CliRunner().invoke(check, [str(a) for a in args], standalone_mode=False, catch_exceptions=False)


def contents(folder: Path) -> Mapping[Path, bytes]:
    """Every file below a folder."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("how", [["--fix"], ["--fix", "--unsafe-fixes"], ["--diff"], []])
def test_folders_with_sessions(project: Path, how: list[str]) -> None:
    """The project's own files are checked and fixed; sessions in it are not entered."""
    before = {s: contents(project / s) for s in ("train.stepscope", "experiments")}
    done = call(project, *how)
    assert KEPT not in done.output
    assert {s: contents(project / s) for s in before} == before
    fixed = (project / "train.py").read_bytes() != SLOW
    assert fixed == ((project / "web/train.py").read_bytes() != SLOW) == ("--fix" in how)
    assert discover([project], leave_out=leads_in) == [project / "train.py", project / "web/train.py"]


@pytest.mark.parametrize(
    "named", ["train.stepscope", "experiments/run 7", f"train.stepscope/{KEPT}", "experiments/run 7/captures"]
)
@pytest.mark.parametrize("way", ["itself", "link"])
def test_naming_a_session(project: Path, named: str, way: str) -> None:
    """A session or what lies in it, named itself or by a link: one line that says so and what to do; nothing is done."""
    path = project / named
    if way == "link":
        path = project / f"link{path.suffix}"
        path.symlink_to(project / named)
    before = contents(project)
    with pytest.raises(UsageError, match=r"is a session; .*stepscope report") as error:
        call(project / "train.py", path, "--fix")
    assert "\n" not in str(error.value)
    assert contents(project) == before


def test_being_inside_of_a_session(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default, this folder, is a session as well where it lies in one."""
    monkeypatch.chdir(project / "train.stepscope" / "captures")
    with pytest.raises(UsageError, match=r"lies in .*train.stepscope, which is a session"):
        call("--fix")


def test_links_into_a_session(project: Path) -> None:
    """A link below a folder that leads into a session is not followed, one to another file is."""
    (project / "kept.py").symlink_to(project / "train.stepscope" / KEPT)
    (project / "again.py").symlink_to(project / "train.py")
    assert [path.name for path in discover([project], leave_out=leads_in)] == ["again.py", "train.py", "train.py"]


def test_folders_above_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns hold for named files below the settings' folder or the working directory, not for what lies above."""
    home = tmp_path / "build" / "proj"
    for name in ("a.py", "build/b.py", "src/old/c.py"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("x = 1\n")
    paths = [home / "a.py", home / "build/b.py"]
    for here in (tmp_path, home, Path("/")):
        monkeypatch.chdir(here)
        assert discover(paths, of_projects={home: ["build"]}) == paths[:1]
    monkeypatch.chdir(home)
    assert discover(paths, ["build"]) == paths[:1]
    assert discover([Path("a.py"), Path("build/b.py")], ["build/*"]) == [Path("a.py")]
    monkeypatch.chdir(home / "src")
    assert discover([Path("old/c.py")], of_projects={home: ["old/c.py"]}) == []
    assert discover([Path("../build/b.py")], of_projects={home: ["build/b.py"]}) == []
    monkeypatch.chdir(tmp_path)
    assert discover([Path("build/proj/a.py")], ["build/proj"], of_projects={home: ()}) == []


def test_settings_of_a_project_below_a_folder_of_such_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file below ``build`` that is named is checked though the project excludes its own ``build``."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = tmp_path / "build" / "proj"
    home.mkdir(parents=True)
    (home / "a.py").write_bytes(SLOW)
    (home / "pyproject.toml").write_text('[tool.stepscope.check]\nexclude = ["build"]\n')
    done = call(home / "a.py")
    assert (done.return_value, "checked 1 file" in done.stderr) == (1, True)


def test_packed_sessions(project: Path) -> None:
    """A packed session is told as one by what it holds; another archive is a file that cannot be read."""
    packed = project / "evidence.bin"
    bundle.pack(project / "train.stepscope", packed)
    before = packed.read_bytes()
    with pytest.raises(UsageError, match=r"is a session; .*stepscope report .*evidence.bin"):
        call(packed, "--fix")
    assert packed.read_bytes() == before
    (project / "other.zip").write_bytes(b"PK\x03\x04 and so on\0")
    assert "skipped: holds NUL bytes" in call(project / "other.zip").stderr


def test_nothing_is_written_into_a_session(project: Path) -> None:
    """The place where files are written refuses it, whoever asks."""
    kept = project / "train.stepscope" / KEPT
    (failed,) = check_fix.write([check_fix.Change(path=str(kept), old=SLOW, new=b"")])
    assert "nothing was fixed: the file is part of a session" in failed.text
    assert kept.read_bytes() == SLOW
