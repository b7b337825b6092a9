"""The table of known defects: its sources, its ranges, and what it says of versions."""

from __future__ import annotations

import pytest

from stepscope.check.advisories import ALL as CHECKED
from stepscope.detectors import registry
from stepscope.tables import advisories


def test_every_advisory_has_a_source_and_a_symptom() -> None:
    """An issue's address, ranges that are not empty, codes that exist, and something that lets it be said at all."""
    codes = {detector.code for detector in registry.EVERY}
    ids = [one.id for one in advisories.everything()]
    assert len(set(ids)) == len(ids)
    for one in advisories.everything():
        assert one.source.startswith("https://github.com/"), one.id
        assert one.source.endswith("/" + one.id.rpartition("-")[2]), one.id
        assert set(one.findings) <= codes, one.id
        assert one.findings or one.mismatch or one.check, one.id
        for first, fixed in one.packages.values():
            assert not (first and fixed) or advisories.parsed(first) < advisories.parsed(fixed), one.id


@pytest.mark.parametrize(
    ("versions", "concerned"),
    [
        ({"tensorflow": "2.0.0"}, True),
        ({"tensorflow": "2.0.4rc1"}, True),
        ({"tensorflow": "1.15.5"}, False),
        ({"tensorflow": "2.1.0"}, False),
        ({"tensorflow": "unknown"}, False),
        ({"keras": "2.0.0"}, False),
    ],
)
def test_ranges(versions: dict[str, str], concerned: bool) -> None:
    """The first version is in, the one with the fix is not; a package that is not known is in no range."""
    assert ("tensorflow-33030" in [one.id for one in advisories.concerning(versions)]) is concerned


def test_nothing_is_known_of_the_newest_versions() -> None:
    """What has been fixed says nothing of later versions."""
    newest = {"tensorflow": "2.21.0", "keras": "3.15.1", "numpy": "2.4.6", "python": "3.12.1"}
    newest |= {"torch": "2.13.0+cu130", "onnxruntime": "1.32.0", "nvidia-cudnn-cu12": "9.21.0.82"}
    assert advisories.concerning(newest, "aarch64") == []


def test_a_defect_of_one_architecture_is_of_no_other() -> None:
    """Wheels for another processor do not have it, and an unknown processor is no such one."""
    told = {machine: _ids({"torch": "2.2.0"}, machine) for machine in ("aarch64", "x86_64", "")}
    assert [machine for machine, ids in told.items() if "pytorch-119374" in ids] == ["aarch64"]


def _ids(versions: dict[str, str], machine: str) -> list[str]:
    return [one.id for one in advisories.concerning(versions, machine)]


def test_the_checker_has_those_with_calls() -> None:
    """One table: calls that source code shows, by the version of TensorFlow."""
    assert {one.source for one in CHECKED} == {one.source for one in advisories.everything() if one.calls}
