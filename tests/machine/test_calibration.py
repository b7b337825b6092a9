"""The machine's roofs in the user's state folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.derive.memory_looks import GOOD_WALKS

from stepscope.machine import calibration
from stepscope.model.session.replays import Roofs

ROOFS = Roofs(flops_per_s=1e11, memory_bytes_per_s=1e10, copies=((4096, 5e10),), fixed_ns=900.0)


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_what_was_kept_is_read(tmp_path: Path) -> None:
    """Roofs are kept below the state folder, for this machine."""
    assert calibration.load() is None
    assert tmp_path in calibration.save(ROOFS).parents
    assert calibration.load() == ROOFS


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"machine":{"cpu":"","cpus":1,"quota_milli":-1},"roofs":{"flops_per_s":-1}}', b"x" * 100_000]
)
def test_a_damaged_file_is_no_calibration(data: bytes) -> None:
    """Empty, of another shape, with a negative rate, too large."""
    calibration.save(ROOFS).write_bytes(data)
    assert calibration.load() is None


def test_roofs_of_another_machine_do_not_count() -> None:
    """A copied file says whose it is."""
    path = calibration.save(ROOFS)
    path.write_bytes(path.read_bytes().replace(b'"cpus":', b'"cpus":1'))
    assert calibration.load() is None


@pytest.mark.parametrize("data", [b"", b"{}", b'{"points": [{"bytes": -1}]}', b"x" * 100_000])
def test_the_cost_of_tlb_misses_is_kept_likewise(tmp_path: Path, data: bytes) -> None:
    """It is read for this machine and kernel, and none if the file is damaged or holds nothing."""
    assert calibration.load_page_walks() is None
    path = calibration.save_page_walks(GOOD_WALKS)
    assert tmp_path in path.parents
    assert calibration.load_page_walks() == GOOD_WALKS
    path.write_bytes(data)
    assert calibration.load_page_walks() is None
