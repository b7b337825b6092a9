"""A collector that gives its memory back: the mark that it leaves, and who is told."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from stepscope.launcher import give_way
from stepscope.launcher.give_way import GaveWay
from stepscope.launcher.sidecar_process import SidecarProcess
from stepscope.native import own_python, process_stat
from stepscope.native.cgroups import memory_kills
from stepscope.wire import commands

MIB = 1 << 20
WHY = GaveWay(at_ns=20_300_000_000, limit_bytes=850 * MIB, left_bytes=41 * MIB, own_bytes=74 * MIB)


def process(run: Path, key: str, *, listens: bool) -> Path:
    """The folder of a measured process, with that of its commands if it has a thread of ours."""
    folder = run / "procs" / key
    (folder / "commands" if listens else folder).mkdir(parents=True)
    return folder / "commands"


def test_every_process_is_told_that_can_be(tmp_path: Path) -> None:
    """Those without a thread of ours are counted, those that have ended are not told."""
    me = f"{os.getpid()}-{process_stat.start_ticks(os.getpid())}"
    told = process(tmp_path, me, listens=True)
    process(tmp_path, f"{me}-2", listens=False)
    ended = process(tmp_path, "4194304-1", listens=True)
    (command,) = give_way.announce(tmp_path, WHY)
    assert command.parent == told
    assert [asked["kind"] for asked in commands.Inbox(str(told)).take()[0]] == ["leave"]
    assert not command.exists()
    assert list(ended.iterdir()) == []
    found = give_way.read(tmp_path)
    assert found is not None
    assert (found.at_ns, found.deaf) == (WHY.at_ns, 1)
    said = "little (of 1 processes without a thread of ours) was recorded from 0.3 s on: "
    assert found.text(20_000_000_000).startswith(said)


def test_the_report_says_from_when_and_why() -> None:
    """One line: when, what was left of what, and what we held; or that the kernel was faster."""
    assert WHY.text(3_000_000_000) == (
        "nothing was recorded from 17.3 s on: 41 MiB were left in the job's control group (850 MiB), less than the "
        "74 MiB that stepscope held there and gave back to the job"
    )
    killed = GaveWay(at_ns=20_300_000_000, limit_bytes=850 * MIB, left_bytes=1)
    assert killed.text(3_000_000_000).endswith(
        "the kernel killed the collector because memory ran out in the job's control group (850 MiB)"
    )


def test_a_mark_that_is_missing_or_damaged_is_none(tmp_path: Path) -> None:
    """Then the collector has died as any other."""
    assert give_way.read(tmp_path) is None
    (tmp_path / "gave-way.json").write_text('{"at": 1}')
    assert give_way.read(tmp_path) is None


def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> SidecarProcess:
    """A sidecar that has run this instead, and has been reaped."""
    monkeypatch.setattr(own_python, "command", lambda *_args, **_more: [sys.executable, "-S", "-c", code])
    sidecar = SidecarProcess(tmp_path, tmp_path / "s.stepscope")
    sidecar.start()
    until = time.monotonic() + 30
    while not sidecar.reaped() and time.monotonic() < until:
        os.waitid(os.P_PID, sidecar.pid, os.WEXITED | os.WNOWAIT)
    return sidecar


def test_a_sidecar_that_gave_way_is_not_restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exit code says so."""
    assert ended(tmp_path, monkeypatch, f"raise SystemExit({give_way.EXIT_CODE})").gave_way
    assert not ended(tmp_path, monkeypatch, "raise SystemExit(1)").gave_way


@pytest.mark.parametrize("kills", [0, 1])
def test_a_sidecar_that_the_kernel_kills_for_memory_has_given_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    """If a kill was counted in its control group; a sidecar that somebody killed is restarted."""
    counted = iter([7, 7 + kills])
    monkeypatch.setattr(memory_kills, "of_group", lambda: next(counted))
    killed = ended(tmp_path, monkeypatch, f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})")
    assert killed.gave_way == (give_way.read(tmp_path) is not None) == bool(kills)
