"""Op statistics agree with xprof's on the same files: to the microsecond where both know the op."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.derive.optrace import op_times
from stepscope.readers.xplane import xspace
from stepscope.tables.optrace import PlaneKind

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT.parent / "shared" / "data" / "xplane"
SAID = ROOT / "tests" / "data" / "xprof-2.24.2"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not beside this checkout")


def _said(name: str) -> dict[tuple[str, str, str], tuple[int, float, float]]:
    rows = [line.split("\t") for line in (SAID / f"{name}.tsv").read_text().splitlines()]
    return {(r[0], r[1], r[2]): (int(r[3]), float(r[4]), float(r[5])) for r in rows}


def _ours(name: str) -> dict[tuple[str, str, str], tuple[int, float, float]]:
    trace = xspace.read_file(SHARED / f"{name}.xplane.pb")
    found: dict[tuple[str, str, str], tuple[int, float, float]] = {}
    for row in op_times.build(trace).rows():
        where = "Host" if trace.planes[row.plane].kind is PlaneKind.HOST else "Device"
        calls, total, own = found.get((where, row.type, row.name), (0, 0.0, 0.0))
        found[where, row.type, row.name] = (calls + row.calls, total + row.total_ps / 1e6, own + row.self_ps / 1e6)
    return found


@pytest.mark.parametrize("name", ["tf-cpu-input-bound", "tf-cpu-input-fixed", "gpu-multi-worker"])
def test_every_op_that_xprof_lists_has_its_times(name: str) -> None:
    ours = _ours(name)
    for op, (_, total, own) in _said(name).items():
        assert ours[op][1:] == pytest.approx((total, own), abs=0.01), op


@pytest.mark.parametrize("name", ["tf-cpu-input-bound", "tf-cpu-input-fixed"])
def test_on_a_cpu_there_are_no_other_ops(name: str) -> None:
    """Calls differ where xprof counts an allocation as one of its op's occurrences; it takes no time."""
    ours, said = _ours(name), _said(name)
    assert ours.keys() == said.keys()
    assert sum(own for *_, own in ours.values()) == pytest.approx(sum(own for *_, own in said.values()), abs=0.1)


def test_ops_of_a_tpu_have_the_times_of_the_devices_own_clock() -> None:
    """Xprof calls copies Unknown and names other ops by what they come from; times and their sum are the same."""
    ours, said = _ours("tpu-inference"), _said("tpu-inference")
    for (_, kind, name), (calls, _, own) in said.items():
        if kind == "Unknown":
            mine = next(value for (_, _, op), value in ours.items() if op == name)
            assert mine[0] == calls
            assert mine[2] == pytest.approx(own, abs=0.01)
    assert sum(own for *_, own in ours.values()) == pytest.approx(sum(own for *_, own in said.values()), abs=0.1)
