"""One run of an experiment."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.launcher.peers import Contacts, Peer
from stepscope.use_cases.whatif import runs


@pytest.mark.parametrize(
    ("code", "argv", "named"),
    [
        (2, ("python", "train.py", "--rounds", "3"), "--rounds"),
        (2, ("python", "train.py", "--folder=out"), "--folder=out"),
        (2, ("python", "train.py", "--batch", "3"), ""),
        (1, ("python", "train.py", "--rounds", "3"), ""),
    ],
    ids=["refused", "with-a-value", "not-ours", "other-failure"],
)
def test_options_that_the_program_was_given(code: int, argv: tuple[str, ...], named: str) -> None:
    """A program that refuses an option of ours says so in its output; the message says where the option belongs."""
    said = runs._misplaced(code, argv)
    expected = f"; {named} went to the program; put options of whatif before the script" if named else ""
    assert said == expected


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", True),
        ("curl: (6) Could not resolve host: example.com", True),
        ("requests.exceptions.ConnectionError: HTTPSConnectionPool: Max retries exceeded", True),
        ("bash: connect: Network is unreachable", True),
        ("SystemError: Objects/tupleobject.c:927: bad argument to internal function", False),
        ("[Errno -3] Temporary failure in name resolution" + "\nepoch 1" * 2_000 + "\nKeyError: 'x'", False),
        ("", False),
    ],
    ids=["python", "curl", "requests", "shell", "another-error", "long-before", "silent"],
)
def test_a_failure_that_speaks_of_the_network(tmp_path: Path, said: str, *, named: bool) -> None:
    """What the job wanted to reach is no reason of its failure, unless its last words say so."""
    log = tmp_path / "1-as-it-is.log"
    log.write_text(said)
    hint = runs._without_network(Contacts(peers=(Peer(name="s3.example.com:80", attempts=3),)), log)
    reason = "; it had no network and wanted to reach s3.example.com:80 (3 times): see --allow-network"
    assert hint == (reason if named else "")
