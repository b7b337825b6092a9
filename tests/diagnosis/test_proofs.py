"""The command that proves a finding's remedy."""

from __future__ import annotations

import shlex

import msgspec
import pytest
from tests.report.samples import finding

from stepscope.diagnosis import proofs
from stepscope.model.report.input_bound import InputBound, InputEdit
from stepscope.model.session.session import Manifest
from stepscope.tables.findings import Finding, Remedy
from stepscope.tables.place import Place

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


def test_an_edit_of_the_input_is_proved_by_itself() -> None:
    """A filter before the map: the trial makes that edit, not the map's parallel calls."""
    edit = InputEdit(kind="earlier", text="", per_s=2.0, binds="cores", what_if="stepscope whatif --try input-edits:x")
    bound = InputBound(
        text="",
        unit="samples",
        now_per_s=1.0,
        best_per_s=2.0,
        without_cache_per_s=2.0,
        binds="cores",
        cores=1.0,
        step_ns=1,
        step_cpu_ns=1,
        memory_bytes=0.0,
        edits=(edit,),
    )
    manifest = msgspec.structs.replace(Manifest(), command=COMMAND, mode="run")
    wanted = (Remedy(id="filter-first", text="F"), Remedy(id="parallel-map", text="P"))
    order, other = _slow("INP001", remedies=wanted), _slow("INP001", remedies=wanted[1:])
    found = proofs.annotated((order, other), manifest, bound)
    assert found[0].remedies[0].what_if == edit.what_if
    assert "--try parallel-map" in str(found[1].remedies[0].what_if)


@pytest.mark.parametrize(
    ("remedy", "trial"), [("parallel-map", "parallel-map"), ("use-tensorflow-ops", "compute-only")]
)
def test_a_map_is_run_in_parallel_only_where_one_was_seen(remedy: str, trial: str) -> None:
    """A generator that is given to fit has none."""
    assert f"--try {trial} " in str(_proof(_slow("INP007", where=(), remedies=(Remedy(id=remedy, text="A"),))))
