"""How ``ps`` and ``top`` show a job that hangs."""

from __future__ import annotations

import pytest

from stepscope.model.api.status import Status
from stepscope.report import live
from stepscope.tables.hang import Hang, HangFrame, HangThread

OWN = HangFrame("/job/load.py", "batches", 31, own=True)
MAIN = HangFrame("/job/train.py", "main", 52, own=True)
HANG = Hang(
    kind="network",
    text="waits for the network: 10.0.0.2:80 (recvfrom)",
    pid=7,
    file=OWN.file,
    line=OWN.line,
    function=OWN.function,
    main=MAIN,
    threads=(
        HangThread(pid=7, tid=7, name="python", call="futex", frames=(MAIN,)),
        HangThread(pid=7, tid=9, name="python", call="recvfrom", on="TCP 10.0.0.2:80", frames=(OWN,)),
        HangThread(pid=7, tid=10, name="tf_Compute\x1b", alike=8),
    ),
)
STATUS = Status(pid=7, phase="training", steps=9, hang=HANG, hang_since_unix_s=100.0, updated_unix_s=140.0)
ROW = live.JobRow(status=STATUS, user="me", state="running", name="train.py")


@pytest.mark.parametrize("width", [80, 160])
def test_a_job_that_hangs(width: int) -> None:
    """The list says that and what for; the view has the places of all threads and how to see their stacks."""
    table, view = live.table([ROW], width=width), live.text(ROW, width=width, now_s=140.0)
    assert "hangs" in table
    assert "HNG001" in table
    for said in ("hangs for 40", "10.0.0.2:80", "load.py:31", "main (train.py:52)", "stepscope attach 7 --stacks"):
        assert said in "".join(view.splitlines()) or said in view
    assert "\x1b" not in table + view


def test_a_job_that_computes_while_no_batch_comes() -> None:
    """It is never called a hang."""
    busy = Hang(kind="dataset", state="busy", text="no batch comes", file=OWN.file, line=31, function="batches")
    row = live.JobRow(status=Status(hang=busy), user="me", state="running", name="train.py")
    assert "hang" not in live.table([row], width=160) + live.text(row, width=160)
