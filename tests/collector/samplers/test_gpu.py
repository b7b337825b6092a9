"""The GPU sampler against a library that replays readings: no GPU is needed, and none was ever seen here."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.collector.samplers.gpu import GpuSampler
from stepscope.collector.samplers.names import NameNumbers

HERE = Path(__file__).parent
ASK = """
import json, msgspec, sys
from stepscope.collector.samplers.gpu import GpuSampler
from stepscope.collector.samplers.names import NameNumbers
names = NameNumbers()
sampler = GpuSampler(0, names, driver=sys.argv[1])
for second in range(1, 4):
    sampler.sample(second, frozenset({42}))
table = sampler.rows.table()
columns = {name: getattr(table, name).tolist() for name in table.__struct_fields__}
now = [msgspec.to_builtins(gpu) for gpu in sampler.now]
print(json.dumps({"now": now, "problem": sampler.problem, "count": sampler.count, "names": names.waiting, **columns}))
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


def test_the_last_look_is_the_live_reading(library: Path, driver: Path, tmp_path: Path) -> None:
    """What the page and the exporter show is the sampler's last row, with the power and what holds the clock down."""
    readings = tmp_path / "readings"
    readings.write_text("97 40 78000000000 80000000000 100 2000 42\n0 0 1 2 9 9 42\n55 1 5 9 1 1 7\n")
    more = {"LD_LIBRARY_PATH": str(library), "FAKE_NVML": str(readings), "FAKE_POWER": "655500", "FAKE_REASONS": "0x44"}
    seen = ask(driver, more)
    assert seen["now"] == [
        {
            "index": 0,
            "name": "Replayed GPU",
            "busy_ratio": 0.55,
            "used_bytes": 5,
            "job_bytes": 0,
            "total_bytes": 9,
            "power_w": 655.5,
            "slowed": ["power limit", "temperature, by hardware"],
            "rx_bytes_s": 2_048_000,
            "tx_bytes_s": 102_400,
        }
    ]


LOOK = """
import json, msgspec, sys
from stepscope.machine import nvml
print(json.dumps(msgspec.to_builtins(nvml.look(sys.argv[1]))))
"""


def test_the_doctor_reads_the_same_library(library: Path, driver: Path, tmp_path: Path) -> None:
    """Driver, newest CUDA, modes and power of each device; what the card refuses is None."""
    readings = tmp_path / "readings"
    readings.write_text("0 0 5 9 1 1 7\n")
    more = {"FAKE_PERSISTENCE": "1", "FAKE_MODE": "3", "FAKE_MIG": "0", "FAKE_POWER": "76000"}
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library), "FAKE_NVML": str(readings), **more}
    pytest.importorskip("pynvml")
    done = subprocess.run(
        [sys.executable, "-c", LOOK, str(driver)], env=environment, capture_output=True, text=True, check=True
    )
    seen = json.loads(done.stdout)
    assert (seen["count"], seen["problem"], seen["driver"], seen["cuda"]) == (1, "", "580.159.04", [13, 0])
    (gpu,) = seen["devices"]
    assert (gpu["name"], gpu["power_w"], gpu["power_limit_w"], gpu["reasons"]) == ("Replayed GPU", 76.0, 700.0, None)
    assert (gpu["mig"], gpu["compute_mode"], gpu["persistence"]) == (False, 3, True)


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
    sampler = GpuSampler(0, NameNumbers(), driver=str(tmp_path / "none"))
    sampler.sample(1, frozenset())
    assert (sampler.count, sampler.problem, len(sampler.rows)) == (0, "", 0)
