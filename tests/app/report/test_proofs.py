"""The command that proves a finding's remedy."""

from __future__ import annotations

import shlex

import msgspec
import pytest
from tests.reports.samples import finding

from stepscope.app.report import proofs
from stepscope.model.report.finding import Finding, Place, Remedy
from stepscope.model.session.session import Manifest

COMMAND = ("python", "my train.py", "--epochs", "3")


def _slow(code: str = "HST001", **fields: object) -> Finding:
    made = msgspec.structs.replace(finding("HST004"), code=code, where=(Place(file="train.py", line=7),))
    return msgspec.structs.replace(made, **{"remedies": (Remedy(id="a", text="A"), Remedy(id="b", text="B")), **fields})


def _proof(given: Finding, mode: str = "run") -> str | None:
    manifest = msgspec.structs.replace(Manifest(), command=COMMAND, mode=mode)
    (found,) = proofs.annotated((given,), manifest)
    return found.remedies[0].what_if if found.remedies else None


def test_the_first_remedy_has_a_command_that_runs_the_job_with_the_trial() -> None:
    words = shlex.split(_proof(_slow()) or "")
    assert words == ["stepscope", "whatif", "--try", "stub:train.py:7", "--", *COMMAND]


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        (_slow("MEM001"), "run"),
        (_slow(remedies=()), "run"),
        (_slow(), "import"),
    ],
    ids=["no-trial", "no-remedy", "no-run"],
)
def test_no_command_where_nothing_can_be_tried(given: Finding, mode: str) -> None:
    assert _proof(given, mode) is None


def test_a_command_of_a_remedy_stays() -> None:
    given = _slow(remedies=(Remedy(id="a", text="A"), Remedy(id="b", text="B", what_if="stepscope whatif --try b")))
    assert _proof(given) is None
