"""A job on a host with a GPU: there is none here, a library that replays readings answers as NVML does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.run.conftest import STEPS, Project, environment

pytestmark = pytest.mark.slow

NVML = Path(__file__).parents[1] / "collector" / "samplers" / "fake_nvml.c"
COMPUTES = """
import sys, time
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
weights = tf.Variable(tf.random.normal([768, 768]))

@tf.function
def step(batch):
    weights.assign_add(1e-9 * tf.matmul(batch, weights))

batch = tf.random.normal([768, 768])
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    step(batch)
"""
DRIVER = "mount -t tmpfs none /proc/driver && mkdir -p /proc/driver/nvidia/gpus/0000:01:00.0"


def beside_gpu(project: Project, readings: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run stepscope where the driver shows a device and NVML says what stands in ``readings``."""
    pytest.importorskip("pynvml")
    gcc = shutil.which("gcc")
    if os.geteuid() != 0 or gcc is None or not Path("/proc/driver").is_dir() or shutil.which("unshare") is None:
        pytest.skip("a device can be shown by root only, with gcc and unshare")
    library, values = project.root / "libnvidia-ml.so.1", project.root / "readings"
    subprocess.run([gcc, "-shared", "-fPIC", "-O1", "-o", str(library), str(NVML)], check=True)
    values.write_text(readings)
    command = ["unshare", "--mount", "sh", "-c", f'{DRIVER} && exec "$@"', "sh", *project.command(*args)]
    if subprocess.run(["unshare", "--mount", "sh", "-c", DRIVER], check=False, capture_output=True).returncode:
        pytest.skip("this container may not mount")
    variables = environment(LD_LIBRARY_PATH=str(project.root), FAKE_NVML=str(values))
    return subprocess.run(
        command, cwd=project.root, env=variables, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_live_analysis_looks_at_the_device_and_goes_on(project: Project) -> None:
    """The sidecar analyses after half a minute, ends with the job, and says what the device did."""
    script = project.script("train.py", STEPS.replace("0.001", "0.01"))
    done = beside_gpu(
        project, "98 40 75000000000 80000000000 9 9 0\n", "run", "--report-json", "r.json", str(script), "3400"
    )
    assert done.returncode == 0, done.stderr
    assert "does not end" not in done.stderr
    report = json.loads((project.root / "r.json").read_text())
    assert [f["code"] for f in report["findings"] if f["code"].startswith("GPU")] == ["GPU002"]
    assert report["series"]["res:gpu_busy_percent"]
    (session,) = project.root.glob("*.stepscope")
    assert json.loads((session / "manifest.json").read_text())["state"] == "finished"


def test_a_device_that_the_job_leaves_alone_is_asked_about(project: Project) -> None:
    """A run beside an idle device does not end with nothing found: its head asks, and names what decides."""
    script = project.script("train.py", COMPUTES)
    words = ("run", "--budget", "0%", "--report-json", "r.json", str(script), "6")
    done = beside_gpu(project, "0 0 300000000 80000000000 9 9 0\n", *words)
    assert done.returncode == 0, done.stderr
    assert "nothing significant found" not in done.stderr
    assert "does not use the GPU" in done.stderr
    assert "find out: stepscope doctor" in done.stderr
    report = json.loads((project.root / "r.json").read_text())
    (asked,) = [f for f in report["findings"] if f["code"] == "GPU003"]
    assert (asked["severity"], asked["cost"]["basis"]) == ("ask", "unknown")
