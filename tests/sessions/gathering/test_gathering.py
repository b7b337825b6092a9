"""Sessions sent in parts to a folder, a store or a server, and joined from there."""

from __future__ import annotations

import hashlib
import http.client
import importlib.util
import shutil
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace
from tests.sessions.member_sessions import change, changed_member, sessions

from stepscope.sessions import analysis, merge
from stepscope.sessions.gathering import in_time, opening, sending, signing, target, tls
from stepscope.sessions.gathering.folder_target import FolderTarget
from stepscope.sessions.gathering.gathered import COMPLETE
from stepscope.sessions.gathering.server_target import PARTS
from stepscope.sessions.gathering.store_target import StoreTarget
from stepscope.sessions.gathering.target import RefusedError
from stepscope.store.manifests import read_manifest
from stepscope.tables.errors import SessionError, StepscopeError, TargetError, UsageError

KEY = bytes(range(32))


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    """The key that hosts share."""
    path = tmp_path / "KEY"
    path.write_bytes(KEY)
    path.chmod(0o600)
    return path


@pytest.fixture
def server(tmp_path: Path, key_file: Path) -> Iterator[str]:
    """The address of a server that gathers into the folder "there"."""
    with serving(tmp_path / "there", "--key-file", str(key_file)) as url:
        yield url


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[str]:
    """A server; its address."""
    pytest.importorskip("starlette")
    command = [sys.executable, "-m", "stepscope", "gather", "serve", str(folder), "--listen", "127.0.0.1:0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate()


def signed(folder: Path) -> tuple[Path, Path]:
    """(certificate of an authority, private key and certificate of "localhost" that it has signed)."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")

    def made(*words: str) -> None:
        subprocess.run([str(openssl), *words], cwd=folder, check=True, capture_output=True)

    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    made(*new, "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=own authority")
    made(*new, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=DNS:localhost")
    by = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
    made("x509", "-req", "-in", "server.csr", *by, "-out", "server.pem")
    both = folder / "both.pem"
    both.write_text((folder / "server.key").read_text() + (folder / "server.pem").read_text())
    return folder / "ca.pem", both


def joined(folder: Path, url: str, key_file: Path | None = None) -> Path:
    """The joint session of what was gathered."""
    return merge.gathered(url, key_file, folder / "job.stepscope")[0]


def sent_and_joined(folder: Path, url: str, key_file: Path | None = None) -> None:
    """Two workers send; twice is as once; who joins has both, whole, and is told who is missing."""
    parts = sessions(folder, [[1.0], [31.0], [1.0]])
    for part in (parts[0], parts[1], parts[1]):
        sending.send(part, opening.opened(url, key_file))
    joint = joined(folder, url, key_file)
    report = analysis.analyze(joint)
    assert report.findings[0].code == "DST001"
    assert report.cluster is not None
    assert report.cluster.missing == ("worker 2",)
    assert {entry.id for entry in read_manifest(joint).members} == {read_manifest(part).id for part in parts[:2]}


def test_a_shared_folder(tmp_path: Path) -> None:
    """By its path, or as file://; a session alone is joined as well, and the missing are named."""
    sent_and_joined(tmp_path, (tmp_path / "shared").as_uri())
    assert merge.is_gathered(str(tmp_path / "shared"))
    one = tmp_path / "alone"
    sending.send(tmp_path / "w0.stepscope", opening.opened(str(one), None))
    joint, _ = merge.gathered(str(one), None, tmp_path / "of-one.stepscope")
    assert [d.code for d in read_manifest(joint).diagnostics] == ["DX191"]


def test_a_server(tmp_path: Path, server: str, key_file: Path) -> None:
    """Who has the key sends to it and takes from it."""
    sent_and_joined(tmp_path, server, key_file)


def test_a_store(tmp_path: Path) -> None:
    """Whatever fsspec knows."""
    pytest.importorskip("fsspec")
    sent_and_joined(tmp_path, f"memory://gathered-{time.monotonic_ns()}")


def test_https(tmp_path: Path, key_file: Path) -> None:
    """A server whose certificate the given authority has signed for the name in the address is trusted, no other."""
    ca, both = signed(tmp_path)
    (session,) = sessions(tmp_path, [[1.0]])
    with serving(tmp_path / "there", "--key-file", str(key_file), "--certificate", str(both)) as url:
        assert url.startswith("https://127.0.0.1:")
        named = url.replace("127.0.0.1", "localhost")
        sent = sending.send(session, opening.opened(named, key_file, ca))
        assert len(opening.opened(named, key_file, ca).names()) == len(sent.parts) + 1
        for address, authority, why in (
            (named, None, "not trusted .*--ca-file FILE"),
            (url, ca, "another name in its certificate"),
            (url.replace("https", "http"), None, "does it expect https"),
        ):
            with pytest.raises(TargetError, match=why):
                opening.opened(address, key_file, authority).names()
    with serving(tmp_path / "there", "--key-file", str(key_file)) as url, pytest.raises(RefusedError, match="http://"):
        opening.opened(url.replace("http", "https"), key_file).names()
    for file in (key_file, tmp_path / "none"):
        with pytest.raises(UsageError, match="expected a file with certificates"):
            target.check("https://host:1", key_file, file)
        with pytest.raises(UsageError, match="expected a file \\(PEM\\) with the private key"):
            tls.check_own(file)


def test_a_certificate_that_has_expired() -> None:
    """The line says so, and that it is the server's matter."""
    error = ssl.SSLCertVerificationError()
    error.verify_code, error.verify_message = 10, "certificate has expired"
    assert tls.why(error) == "the server's certificate has expired: it needs a new one"


def test_a_store_without_folders_is_not_asked_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that is asked for a folder makes the bucket, also one that does not exist for a typing error."""
    memory = pytest.importorskip("fsspec.implementations.memory")
    registry = pytest.importorskip("fsspec.registry")

    def asked(store: object, path: str, *, exist_ok: bool = False) -> None:
        del store, exist_ok
        raise AssertionError(path)

    flat = type("Flat", (memory.MemoryFileSystem,), {"protocol": "s3", "makedirs": asked})
    monkeypatch.setitem(registry._registry, "s3", flat)
    (session,) = sessions(tmp_path, [[1.0]])
    place = StoreTarget(f"s3://bucket-{time.monotonic_ns()}/jobs/")
    sent = sending.send(session, place)
    assert len(place.names()) == len(sent.parts) + 1


class Unsteady(FolderTarget):
    """A place that does not take the first parts that it is given."""

    def __init__(self, folder: Path, *errors: TargetError) -> None:
        super().__init__(folder)
        self.errors = list(errors)

    def put(self, name: str, data: bytes) -> None:
        """Raise the next error, or store it."""
        if self.errors:
            raise self.errors.pop(0)
        super().put(name, data)


def test_what_may_pass_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is started again gets the part when it is back; one that has refused it is not asked again."""
    monkeypatch.setattr(sending, "PAUSE_S", 0.0)
    (session,) = sessions(tmp_path, [[1.0]])
    place = Unsteady(tmp_path / "there", *[TargetError("connection refused")] * (sending.TRIES - 1))
    sending.send(session, place)
    assert any(name.endswith(COMPLETE) for name in place.names())
    place.errors = [RefusedError("not signed with the key"), TargetError("left")]
    with pytest.raises(RefusedError, match="not signed"):
        sending.send(session, place)
    assert len(place.errors) == 1


def test_a_job_that_is_no_clusters(tmp_path: Path) -> None:
    """Its one session is taken as it was sent."""
    (session,) = sessions(tmp_path, [[1.0]])
    manifest = read_manifest(session)
    change(session, workers=tuple(replace(worker, member=None) for worker in manifest.workers))
    sending.send(session, opening.opened(str(tmp_path / "there"), None))
    taken, _ = merge.gathered(str(tmp_path / "there"), None, tmp_path / "taken.stepscope")
    assert read_manifest(taken) == read_manifest(session)


def test_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session larger than a part has several; the last says that it is whole, and a changed one is refused."""
    monkeypatch.setattr(target, "PART_BYTES", 2_000)
    one, two = sessions(tmp_path, [[1.0], [1.0]])
    place = FolderTarget(tmp_path / "there")
    sent = sending.send(one, place)
    assert len(sent.parts) > 2
    sending.send(two, place)
    names = place.names()
    assert sum(name.endswith(COMPLETE) for name in names) == 2
    (first,) = [name for name in names if name.endswith("part-000001") and "worker-0" in name]
    place.put(first, b"other")
    with pytest.raises(SessionError, match="is not what was sent"):
        joined(tmp_path, str(place.folder))
    (place.folder / first).unlink()
    joint, notes = merge.gathered(str(place.folder), None, tmp_path / "job.stepscope")
    assert [entry.name for entry in read_manifest(joint).members] == ["worker 1"]
    assert [note.endswith("was not sent whole") for note in notes] == [True]


def test_earlier_runs_are_left_out(tmp_path: Path) -> None:
    """The run that ended last counts, by the job and by time."""
    (tmp_path / "then").mkdir()
    (tmp_path / "now").mkdir()
    place = FolderTarget(tmp_path / "there")
    for number, folder in enumerate(("then", "now")):
        for index, part in enumerate(sessions(tmp_path / folder, [[1.0], [1.0]])):
            change(part, id=f"{folder}{index}", started_unix_ns=(1_760_000_000 + 3_600 * number) * 10**9)
            sending.send(part, place)
    other = tmp_path / "then" / "w0.stepscope"
    changed_member(other, job_id="other")
    sending.send(other, place)
    joint, notes = merge.gathered(str(place.folder), None, tmp_path / "job.stepscope")
    assert [entry.id for entry in read_manifest(joint).members] == ["now0", "now1"]
    assert notes == ("3 sessions of 2 earlier runs, or of other jobs, are left out",)


def asked(url: str, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> int:
    """The status of an answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request(method, path, body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_who_has_not_the_key_gets_nothing(tmp_path: Path, server: str) -> None:
    """No key, another key, another body, an old request, a name that leaves the folder, a part that is too large."""
    path, now = f"{PARTS}/job/session/part-000001", time.time()
    assert asked(server, "GET", PARTS, {}) == 401
    assert asked(server, "PUT", path, signing.headers(b"other" * 8, "PUT", path, b"x", now), b"x") == 401
    assert asked(server, "PUT", path, signing.headers(KEY, "GET", path, b"x", now), b"x") == 401
    assert asked(server, "PUT", path, signing.headers(KEY, "PUT", path, b"x", now), b"y") == 400
    assert asked(server, "PUT", path, signing.headers(KEY, "PUT", path, b"x", now - 3_600), b"x") == 401
    for name in ("../../x", "a/b/c/d", "a/../c", "a/b/.c", "a/b"):
        assert (
            asked(server, "PUT", f"{PARTS}/{name}", signing.headers(KEY, "PUT", f"{PARTS}/{name}", b"x", now), b"x")
            == 404
        )
    large = bytes(target.PART_BYTES + 1)
    assert asked(server, "PUT", path, signing.headers(KEY, "PUT", path, large, now), large) == 413
    assert not (tmp_path / "there").exists()
    assert asked(server, "PUT", path, signing.headers(KEY, "PUT", path, b"x", now), b"x") == 200
    assert [file.name for file in (tmp_path / "there").rglob("*") if file.is_file()] == ["part-000001"]
    assert asked(server, "POST", path, signing.headers(KEY, "POST", path, b"x", now), b"x") == 405


def test_what_can_never_be_sent_is_said_before_the_job(tmp_path: Path, key_file: Path) -> None:
    """No key for a server, a key that others can read, an address that is none."""
    with pytest.raises(UsageError, match="without --key-file"):
        target.check("http://host:1", None)
    key_file.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        target.check("http://host:1", key_file)
    with pytest.raises(UsageError, match="names a host"):
        target.check("file://host/folder", None)
    with pytest.raises(UsageError, match="expected a folder"):
        target.check("http://host:port", key_file)
    key_file.chmod(0o600)
    for url in ("http://", "https://somebody:secret@host:1"):
        with pytest.raises(UsageError, match=r"the address names .*expected https?://HOST:PORT") as told:
            target.check(url, key_file)
        assert "secret" not in str(told.value)
    for url, why in (("http://a..b:1", "expected a folder"), ("s4://bucket", "fsspec"), ("s3://bucket", "pip install")):
        if url[:2] != "s3" or importlib.util.find_spec("s3fs") is None:
            with pytest.raises(UsageError, match=why):
                target.check(url, key_file)
    with pytest.raises(TargetError, match="no folder"):
        opening.opened(str(tmp_path / "none"), None).names()


def test_a_place_that_does_not_answer_as_it_should(
    tmp_path: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing listens, the folder is a file, or it never answers: one line, and the command that sends later."""
    monkeypatch.setattr(sending, "PAUSE_S", 0.0)
    (session,) = sessions(tmp_path, [[1.0]])
    (tmp_path / "file").touch()
    for url in ("http://127.0.0.1:9", str(tmp_path / "file")):
        arrived, line = sending.outcome(session, url, key_file, str)
        assert not arrived
        assert line.startswith("not gathered: ")
        assert f"stepscope gather send {session} --to {url}" in line
    never = threading.Event()

    def silent(session: Path, place: target.Target) -> None:
        del session, place
        never.wait()
        raise TargetError("it is too late")

    monkeypatch.setattr(sending, "send", silent)
    monkeypatch.setattr(in_time, "WAIT_S", 0.01)
    arrived, line = sending.outcome(session, str(tmp_path), None, str)
    never.set()
    assert not arrived
    assert "took more than" in line


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_failure_that_was_not_foreseen_took_no_minute() -> None:
    """Its traceback is on stderr; the line does not say that the place was slow."""

    def work() -> str:
        raise RuntimeError("ours")

    assert in_time.in_time(work, "s3://a") == (False, "sending to s3://a failed: the error stands above")


def test_authorities_of_another_address(tmp_path: Path) -> None:
    """``--ca-file`` may be for the server that parts of a fleet go to: a folder gets the session without."""
    (session,) = sessions(tmp_path, [[1.0]])
    arrived, line = sending.outcome(session, str(tmp_path / "there"), None, str, ca_file=tmp_path / "CA")
    assert arrived, line
    assert "--ca-file" not in line


def test_nothing_was_gathered(tmp_path: Path) -> None:
    """One line says so."""
    with pytest.raises(StepscopeError, match="no whole session"):
        merge.gathered(str(tmp_path), None, None)


def test_the_same_session_is_the_same_parts(tmp_path: Path) -> None:
    """Sent again, nothing changes: names and contents are those of the session."""
    (session,) = sessions(tmp_path, [[1.0]])
    place = FolderTarget(tmp_path / "there")
    sending.send(session, place)
    before = {name: hashlib.sha256(place.get(name)).hexdigest() for name in place.names()}
    sending.send(session, place)
    assert {name: hashlib.sha256(place.get(name)).hexdigest() for name in place.names()} == before
