"""MEM004 out-of-memory: its fixtures, and who is said to have held the memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.sessions import MS, SCRIPT, Job, S, filled
from tests.detectors.asking import codes, look
from tests.detectors.death_jobs import (
    END,
    LIMIT,
    MB,
    buffering,
    dying,
    keras_value,
    looked,
    modelled,
    raising,
    stepping,
    value,
    without_room,
)
from tests.detectors.fixture import CLAIMS, Claim, Edge, Expected, Fixtures
from tests.detectors.jobs import CALL, LOOP_LINE, MAIN_CALL, train_loop

from stepscope.detectors.system.out_of_memory import DETECTOR
from stepscope.diagnosis import analyze
from stepscope.model.log.events import BatchSeen
from stepscope.model.log.memory import MemoryHeld, MemoryLacked
from stepscope.model.session.session import HostInfo
from stepscope.tables.findings import Finding
from stepscope.tables.records import GpuTable, MemoryTable

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).resolve().parents[2] / "data"


def keeping() -> Job:
    """A list that grows until the job is killed."""
    job = dying(value("history", 1500 * MB, count=1200), value("images", 40 * MB))
    for name, text in job.sources.items():
        job.sources[name] = text.replace("        tidy()\n", "        history.append(loss)\n")
    return job


def unseen() -> Job:
    """A job whose end was not seen."""
    job = dying()
    job.exit_code, job.memory_killed = None, False
    return job


def fixed(mib: int) -> Job:
    """A step with so many MiB that do not grow with the batch."""
    return stepping(fixed=mib)


def wide(samples: int) -> Job:
    """A step that keeps 160 MiB of each of a few samples."""
    return stepping(samples=samples, mib=16)


FIXTURES = Fixtures(
    firing=keeping,
    expected=Expected(
        severity="high",
        cost=1.0,
        where=(("train.py", 46), ("train.py", CALL)),
        metrics=("limit_bytes", "own_bytes", "owner_bytes", "size", "size_that_fits"),
        title=("out of memory", "history in main", "1.46 GiB of 1.95 GiB (control group)", "1,200 entries"),
        pipeline_stage="none",
        remedy="bound-what-is-kept",
    ),
    silent=lambda: dying(code=0, killed=False),
    not_applicable=unseen,
    missing="end of the job",
    below=lambda: without_room(6_999 * MB),
    at=lambda: without_room(7_001 * MB),
    edges={
        "min_fixed_ratio": Edge(below=lambda: fixed(2559), at=lambda: fixed(2561), shows="smaller-layer"),
        "small_batch": Edge(below=lambda: wide(17), at=lambda: wide(16), shows="smaller-layer"),
    },
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixtures(claim: Claim) -> None:
    """It finds its case, is silent where it must be, says what it lacks, and turns at its threshold."""
    claim(DETECTOR, FIXTURES)


def found(job: Job) -> Finding:
    """What is said of the death."""
    (one,) = (f for f in look(job)[0] if f.code == "MEM004")
    return one


def evidence(finding: Finding) -> dict[str, float]:
    """Its figures."""
    return {e.metric: e.value for e in finding.evidence}


def test_a_batch_that_would_have_fitted() -> None:
    """A step whose tensors need more than there is: the largest are named, and the batch that fits is told."""
    finding = found(stepping())
    assert "a step with 256 samples" in finding.title
    assert "wide: 256 MiB float32[batch,262144] of MatMul" in finding.explanation
    assert finding.cause == "Model: improper hyper parameter"
    # 97 % of 2,000 MiB without 100 of others and 300 held before; 10 MiB a sample, and a quarter more
    assert evidence(finding)["size_that_fits"] == pytest.approx((0.97 * 2000 - 100 - 300) / (10 * 1.25), abs=2)


@pytest.mark.parametrize(
    ("stage", "cls", "word", "remedy"),
    [
        ("MemoryCacheImpl", "CacheDataset", "cache of the input", "smaller-cache"),
        ("Shuffle", "ShuffleDataset", "shuffle buffer", "smaller-shuffle"),
        ("Prefetch", "PrefetchDataset", "Prefetch", "read-in-parts"),
    ],
)
def test_buffers_of_the_input(stage: str, cls: str, word: str, remedy: str) -> None:
    """What tf.data holds is told by transformation, in elements."""
    finding = found(buffering(stage, cls))
    assert word in finding.title
    assert finding.remedies[0].id == remedy
    assert evidence(finding)["size"] == 700


def test_an_array_and_what_was_asked_for() -> None:
    """An exception says what did not fit: it is the owner if it is larger than what variables hold."""
    finding = found(raising(asked=1200 * MB, shape=(300, 1 << 20)))
    assert "an array of float[300,1048576] needs 1.17 GiB" in finding.title
    assert finding.remedies[0].id == "read-in-parts"
    assert evidence(finding)["size"] == 300
    assert "ResourceExhaustedError" in finding.explanation
    assert "float[300,1048576]" in finding.explanation


def test_nobody_seen() -> None:
    """Where nothing explains the memory, no owner is invented: the line that ran is told."""
    finding = found(dying(value("small", 100 * MB)))
    assert (finding.cause, finding.remedies[0].id) == ("unknown", "look-at-line")
    assert [p.line for p in finding.where] == [CALL]
    assert f"1.56 GiB of it came while line {CALL} ran" in finding.title


def test_more_came_while_another_line_ran() -> None:
    """The line during which most memory came is told before the one that ran last."""
    job = dying()
    looked(job, END + MS, 1900 * MB, line=CALL + 1)
    finding = found(job)
    assert [p.line for p in finding.where] == [CALL, CALL + 1]
    assert f"came while line {CALL} ran" in finding.title


def test_one_batch_of_all_samples() -> None:
    """The batch of the Keras loop that did not end counts, with its own function, and that it is all there is."""
    job = stepping()
    job.event(BatchSeen(at=0, loop=0, role="predict", size=320, samples=320, steps=1))
    finding = found(job)
    assert "predict works on all 320 samples in one batch" in finding.title
    assert finding.cause == "API: not using batch API"
    assert "batch_size=32" in finding.remedies[0].text
    assert "MiB of it for wide, float32[320,262144]" in finding.title


def test_a_loop_that_ended_is_not_the_batch_at_the_end() -> None:
    """What a fit that ended was given says nothing of the death after it."""
    job = stepping()
    job.event(BatchSeen(at=0, loop=0, role="predict", size=320, samples=320, steps=1))
    job.loop("predict").at(0, MS)
    assert "in one batch" not in found(job).title


def test_layers_too_wide_for_a_small_batch() -> None:
    """Where 16 samples are too many, the layer comes first: its line, and fewer filters; then the batch."""
    finding = found(wide(16))
    assert [r.id for r in finding.remedies] == ["smaller-layer", "smaller-batch"]
    assert "in wide" in finding.remedies[0].text
    assert finding.where[0].line == LOOP_LINE
    assert finding.cause == "Model: improper model parameter"


def test_the_same_data_again() -> None:
    """A variable's data in a tensor of TensorFlow and in what the last line makes of it are told as copies."""
    job = dying(value("images", 600 * MB), value("features", 600 * MB))
    for name, text in job.sources.items():
        lines = text.split("\n")
        lines[LOOP_LINE] = "    images = load(); features = tf.Variable(images)"
        lines[CALL - 1] = "        loss = train_step(tf.convert_to_tensor(features))"
        job.sources[name] = "\n".join(lines)
    finding = found(job)
    assert "the same data 3 times: images in main holds 600 MiB" in finding.title
    assert f"features = tf.Variable(images) at line {LOOP_LINE + 1}" in finding.title
    assert f"tf.convert_to_tensor(features) at line {CALL}" in finding.title
    assert finding.remedies[0].id == "hand-over-batches"
    assert "Besides: features 600 MiB (train.py:" in finding.explanation


@pytest.mark.parametrize("job", [modelled, lambda: dying(keras_value("model", 1024 * MB))], ids=["graph", "look"])
def test_a_layer_with_too_many_weights(job: Callable[[], Job]) -> None:
    """The line that builds the layer with the largest variable is told, with its units and inputs."""
    finding = found(job())
    assert "those of dense (Dense of" in finding.title
    assert "units on 131,072 inputs" in finding.title
    assert finding.where[0].line == LOOP_LINE
    assert (finding.cause, finding.remedies[0].id) == ("Model: improper model parameter", "smaller-layer")


def test_a_model_that_holds_less_than_a_third() -> None:
    """It is no owner, but named with the line of its largest layer: what else its training takes was not seen."""
    finding = found(dying(keras_value("model", 400 * MB)))
    assert finding.cause == "unknown"
    assert [p.line for p in finding.where][:2] == [CALL, LOOP_LINE]
    assert "Besides: the variables of the model and its optimizer 400 MiB (train.py:" in finding.explanation


def test_a_list_of_models() -> None:
    """Models that are kept are told with their class and the variable that keeps them."""
    finding = found(dying(keras_value("models", 1400 * MB, count=30)))
    assert "models in main holds 1.37 GiB" in finding.title
    assert "30 models of Sequential" in finding.title
    assert finding.remedies[0].id == "one-of-each-model"


def test_a_death_without_lack_of_memory_is_none() -> None:
    """Killed by somebody, or ended by another error: no finding of memory."""
    assert "MEM004" not in codes(dying(killed=False))
    assert "MEM004" not in codes(dying(code=1, killed=False))
    assert "MEM004" not in codes(train_loop(80 * MS))


def in_company(by: Literal["", "log", "group", "host"], own: int = 800, host: int = 0) -> Job:
    """A job of so many MiB that is killed at a limit of 2,000 MiB, or with 1,600 MiB of a host's memory in use."""
    job = dying(own=own * MB)
    job.memory_killed_by = by
    columns: dict[str, list[int]] = {
        "at_ns": [END],
        "cgroup_limit_bytes": [-1 if host else LIMIT],
        "cgroup_bytes": [-1 if host else own * MB],
        "cgroup_file_bytes": [-1 if host else 0],
        "total_bytes": [host * MB],
        "available_bytes": [(host - 1600) * MB if host else -1],
    }
    job.resources["memory"] = filled(MemoryTable, 1, **{k: np.asarray(v, np.int64) for k, v in columns.items()})
    job.events = [replace(e, group_limit=0, host_limit=0) if isinstance(e, MemoryHeld) else e for e in job.events]
    return job


def test_a_kill_in_the_jobs_group_is_its_own_if_it_is_the_largest() -> None:
    """The kernel takes the largest process; where others may have been larger, the finding asks instead of saying."""
    sure = found(in_company("group", own=1100))
    assert (sure.severity, sure.title.partition(":")[0]) == ("high", "out of memory")
    assert "takes the largest process: it held 1.07 GiB, all others at most 900 MiB" in sure.explanation
    perhaps = found(in_company("group", own=900))
    assert (perhaps.severity, perhaps.title.partition(":")[0]) == ("ask", "killed, perhaps for lack of memory")
    assert "with 900 MiB held" in perhaps.title
    assert "does not say whose process that was: it held 900 MiB, all others at most 1.07 GiB" in perhaps.explanation
    assert perhaps.remedies[0].what_if == "sudo dmesg -T | grep 'Killed process'"
    assert "100 here" in perhaps.remedies[0].text


@pytest.mark.parametrize("by", ["host", ""], ids=["no counter of the group", "an older session"])
def test_a_kill_somewhere_on_the_host(by: Literal["", "host"]) -> None:
    """With the host's memory nearly full it may have been the job's; else the kernel had no reason to take it."""
    assert found(in_company(by, host=2000)).severity == "ask"
    assert "MEM004" not in codes(in_company(by, host=20_000))


def test_a_job_that_may_have_been_killed_by_somebody_is_not_said_to_be() -> None:
    """The head of the report says what is known: a signal."""
    ways: tuple[Literal["log", "group"], ...] = ("log", "group")
    ends = {by: analyze.report_of(in_company(by).session()) for by in ways}
    assert {by: report.session.end for by, report in ends.items()} == {"log": "memory", "group": "code"}


def _on_a_gpu(*, steps: bool) -> Job:
    """What an H100 recorded of a program that keeps 512 MiB a step (tests/data/gpu-h100), with or without its steps."""
    recorded = json.loads((DATA / "gpu-h100" / "nvml-out-of-memory.json").read_text())
    job = Job()
    job.exit_code, job.ended_ns = 1, 33 * S
    if steps:
        job.function(**MAIN_CALL).every(1_116 * MS // 10, 147, dur=90 * MS, start=14 * S + 700 * MS)
    job.host = HostInfo(gpus=1)
    job.resources["resource_names"] = ("gpu:0 NVIDIA H100 80GB HBM3",)
    columns = {name: np.asarray(of, np.int64) for name, of in recorded.items() if name not in {"name", "driver"}}
    job.resources["gpus"] = filled(GpuTable, len(columns["at_ns"]), **columns)
    job.event(
        MemoryLacked(
            at=31 * S,
            error="OutOfMemoryError",
            asked_bytes=512 * MB,
            device="GPU:0",
            file=SCRIPT,
            line=CALL,
            function="f",
        )
    )
    return job


def test_a_gpu_that_fills_with_each_step_is_told_with_what_each_leaves() -> None:
    """The program keeps one float32[32768, 4096] of each step; nothing is said of the host's memory."""
    found = _found(_on_a_gpu(steps=True))
    grown = next(one.value for one in found.evidence if one.metric == "bytes_per_step")
    assert grown == pytest.approx(512 * MB, rel=0.05)
    assert "78.9 GiB of the 79.6 GiB of GPU:0; 512 MiB more were asked for; it grew by" in found.title
    assert [one.id for one in found.remedies] == ["keep-numbers"]


def test_without_steps_no_growth_is_claimed_of_a_gpu() -> None:
    found = _found(_on_a_gpu(steps=False))
    assert "grew" not in found.title
    assert found.remedies[0].id == "smaller-batch"


def _found(job: Job) -> Finding:
    (found,) = (one for one in look(job)[0] if one.code == DETECTOR.code)
    return found
