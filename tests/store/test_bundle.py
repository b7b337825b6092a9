"""One file of a session and back, and what is done with a file that was made to hurt."""

import stat
import zipfile
from pathlib import Path

import pytest

from stepscope.sessions import bundle
from stepscope.store import open_session
from stepscope.store.bundle import DIGEST
from stepscope.tables.errors import SessionError


def contents(root: Path) -> dict[str, bytes]:
    """All files below a directory."""
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_round_trip(made: Path, tmp_path: Path) -> None:
    """Unpacking gives the files that were packed; the packed file opens in place, as the directory does."""
    before = contents(made)
    packed, size = bundle.pack(made)
    assert packed == tmp_path / "made.stepscope.zip"
    assert size == packed.stat().st_size
    assert open_session(packed).workers[0].records.seq.tolist() == open_session(made).workers[0].records.seq.tolist()
    assert open_session(packed).sources == open_session(made).sources
    unpacked = bundle.unpack(packed, tmp_path / "again.stepscope")
    assert contents(unpacked) == before


def test_caches_are_left_out(made: Path) -> None:
    """``derived/`` and half-written files do not travel."""
    (made / "derived").mkdir()
    (made / "derived" / "cache").write_text("x")
    (made / ".manifest.json.5.tmp").write_text("x")
    packed, _ = bundle.pack(made)
    names = zipfile.ZipFile(packed).namelist()
    assert not [n for n in names if "derived" in n or "tmp" in n]


def test_packing_twice_gives_the_same_bytes(made: Path, tmp_path: Path) -> None:
    """A packed file depends on the session alone, not on the moment of packing."""
    first, _ = bundle.pack(made, tmp_path / "a.zip")
    second, _ = bundle.pack(made, tmp_path / "b.zip")
    assert first.read_bytes() == second.read_bytes()


def test_targets_are_not_overwritten(made: Path, tmp_path: Path) -> None:
    """What exists stays: one line and an error."""
    packed, _ = bundle.pack(made)
    with pytest.raises(SessionError, match="already exists"):
        bundle.pack(made)
    with pytest.raises(SessionError, match="already exists"):
        bundle.unpack(packed)
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".tmp")] == []


@pytest.mark.parametrize("cut", [10, 500, -30])
def test_cut_file(made: Path, tmp_path: Path, cut: int) -> None:
    """A cut packed file is refused with one line, and nothing is left."""
    packed, _ = bundle.pack(made)
    packed.write_bytes(packed.read_bytes()[:cut])
    with pytest.raises(SessionError, match=r"^damaged: .*cut off or altered"):
        bundle.unpack(packed, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_altered_file(made: Path, tmp_path: Path) -> None:
    """A changed byte is found, and nothing is left."""
    packed, _ = bundle.pack(made)
    data = packed.read_bytes()
    packed.write_bytes(data.replace(b"print(1)", b"print(2)"))
    with pytest.raises(SessionError, match=r"000-train\.py"):
        bundle.unpack(packed, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def archive(path: Path, entries: list[tuple[zipfile.ZipInfo | str, bytes]], compression: int = 0) -> Path:
    """A zip file as somebody else would make it."""
    with zipfile.ZipFile(path, "w", compression) as stream:
        for entry, data in entries:
            stream.writestr(entry, data)
    return path


def link(name: str) -> zipfile.ZipInfo:
    """An entry that is a symbolic link."""
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


MANIFEST = ("manifest.json", b'{"schema_version": 1}')


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([MANIFEST, ("../evil", b"x")], "leaves the session"),
        ([MANIFEST, ("/etc/evil", b"x")], "leaves the session"),
        ([MANIFEST, ("a/../../evil", b"x")], "leaves the session"),
        ([MANIFEST, ("a\\..\\evil", b"x")], "leaves the session"),
        ([MANIFEST, (link("workers"), b"/etc")], "no regular file"),
        ([("other", b"x")], "no manifest.json"),
        ([MANIFEST, (DIGEST, b'{"sha256": {}}')], "does not match its entries"),
        ([MANIFEST], "no digests"),
        ([MANIFEST, (DIGEST, b"[]")], "no digests"),
    ],
)
def test_hostile_files(tmp_path: Path, entries: list[tuple[zipfile.ZipInfo | str, bytes]], words: str) -> None:
    """What leaves the session, links or does not add up is refused before anything is written."""
    packed = archive(tmp_path / "evil.zip", entries)
    with pytest.raises(SessionError, match=words):
        bundle.unpack(packed, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["evil.zip"]


def test_compressed_bomb(tmp_path: Path) -> None:
    """Compressed entries are refused: their size on disk would be anybody's guess."""
    packed = archive(tmp_path / "bomb.zip", [MANIFEST, ("big", bytes(10_000_000))], zipfile.ZIP_DEFLATED)
    with pytest.raises(SessionError, match="compressed"):
        open_session(packed)


def test_two_entries_of_one_name(tmp_path: Path) -> None:
    """Names are unique, so that what is checked is what is read."""
    with pytest.warns(UserWarning, match="Duplicate name"):
        packed = archive(tmp_path / "twice.zip", [MANIFEST, MANIFEST])
    with pytest.raises(SessionError, match="two entries"):
        open_session(packed)
