"""The GPU sampler against a library that replays readings: no GPU is needed, and none was ever seen here."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.collector.samplers.gpu import GpuSampler
from stepscope.collector.samplers.names import Names

HERE = Path(__file__).parent
ASK = """
import json, sys
from stepscope.collector.samplers.gpu import GpuSampler
from stepscope.collector.samplers.names import Names
names = Names()
sampler = GpuSampler(0, names, driver=sys.argv[1])
for second in range(1, 4):
    sampler.sample(second, frozenset({42}))
table = sampler.rows.table()
columns = {name: getattr(table, name).tolist() for name in table.__dataclass_fields__}
print(json.dumps({"problem": sampler.problem, "count": sampler.count, "names": names.waiting, **columns}))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a libnvidia-ml.so.1 that replays a file."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc")
    folder = tmp_path_factory.mktemp("nvml")
    out = folder / "libnvidia-ml.so.1"
    subprocess.run([gcc, "-shared", "-fPIC", "-O1", "-o", str(out), str(HERE / "fake_nvml.c")], check=True)
    return folder


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """What the kernel's driver shows of one device."""
    folder = tmp_path / "gpus"
    (folder / "0000:01:00.0").mkdir(parents=True)
    return folder


def ask(driver: Path, environment: dict[str, str]) -> dict[str, object]:
    """What a sampler in a process of its own sees in three looks."""
    pytest.importorskip("pynvml")
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(driver)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_readings_become_rows(library: Path, driver: Path, tmp_path: Path) -> None:
    """Every reading of the library stands in the table under its column, in bytes."""
    readings = tmp_path / "readings"
    readings.write_text(
        "97 40 78000000000 80000000000 100 2000 42\n0 0 78000000000 80000000000 9 9 42\n55 1 5 9 1 1 7\n"
    )
    seen = ask(driver, {"LD_LIBRARY_PATH": str(library), "FAKE_NVML": str(readings)})
    assert (seen["problem"], seen["count"], seen["names"]) == ("", 1, ["gpu:0 Replayed GPU"])
    assert seen["busy_percent"] == [97, 0, 55]
    assert seen["memory_busy_percent"] == [40, 0, 1]
    assert seen["reserved_bytes"] == [78_000_000_000, 78_000_000_000, 5]
    assert seen["job_reserved_bytes"] == [78_000_000_000, 78_000_000_000, 0]
    assert seen["total_bytes"] == [80_000_000_000, 80_000_000_000, 9]
    assert seen["pcie_tx_bytes_s"] == [102_400] * 3
    assert seen["pcie_rx_bytes_s"] == [2_048_000] * 3


def test_what_a_card_does_not_tell_is_unknown(library: Path, driver: Path, tmp_path: Path) -> None:
    """A question that NVML refuses gives -1, not zero; the others are answered."""
    readings = tmp_path / "readings"
    readings.write_text("-1 -1 5 9 -1 -1 42\n")
    seen = ask(driver, {"LD_LIBRARY_PATH": str(library), "FAKE_NVML": str(readings)})
    assert seen["busy_percent"] == [-1, -1, -1]
    assert seen["pcie_rx_bytes_s"] == [-1, -1, -1]
    assert seen["reserved_bytes"] == [5, 5, 5]


def test_a_driver_that_does_not_answer_is_a_stated_problem(driver: Path) -> None:
    """A device without a working NVML is said to be there and not to be sampled, with the reason."""
    seen = ask(driver, {"FAKE_NVML": ""})
    assert seen["count"] == 1
    assert str(seen["problem"]).startswith("NVML: ")
    assert seen["busy_percent"] == []


def test_without_a_device_nothing_is_imported(tmp_path: Path) -> None:
    """Where the kernel shows no device, NVML's module is not loaded and there is nothing to complain of."""
    sampler = GpuSampler(0, Names(), driver=str(tmp_path / "none"))
    sampler.sample(1, frozenset())
    assert (sampler.count, sampler.problem, len(sampler.rows)) == (0, "", 0)
