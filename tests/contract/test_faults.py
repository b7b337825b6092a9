"""Every probe is in the table of ``bench-faults``, whose programs and faults are there."""

import pytest

import _faults_table
from faults import PROGRAM_FOLDER, plan
from stepscope.agent.probes.registry import PROBES


def test_every_probe_has_a_row() -> None:
    """A program exercises each probe under every fault, once; no row is of a probe that is gone."""
    rows = [probe for program in _faults_table.PROGRAMS.values() for probe in program.probes]
    assert sorted(rows) == sorted(PROBES)


@pytest.mark.parametrize("name", _faults_table.PROGRAMS)
def test_a_program_meets_the_fault(name: str) -> None:
    """It sets up the fault inside, waits at the moment of one from outside, and prints its random states."""
    text = (PROGRAM_FOLDER / f"{name}.py").read_text()
    assert all(call in text for call in ("fault.begin()", "fault.moment()", "fault.end("))


def test_every_cell_comes_before_any_comes_again() -> None:
    """Of a plan that is longer than the table."""
    pythons = dict.fromkeys(("own", "torch", "jax", "newer"), "python")
    cells = _faults_table.cells(pythons)
    runs = plan(pythons, len(cells) + 5, 1)
    assert {(fault, program) for fault, program, _ in runs[: len(cells)]} == set(cells)
    assert {number for *_, number in runs[len(cells) :]} == {1}


def test_faults_name_programs_that_there_are() -> None:
    """Where they name any."""
    assert {name for fault in _faults_table.FAULTS.values() for name in fault.programs} <= set(_faults_table.PROGRAMS)
