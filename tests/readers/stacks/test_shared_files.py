"""Every stack file of the shared data reads with its stated truth."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from stepscope.readers.stacks import detect, folded, pprof, speedscope
from stepscope.tables.stacks import StackProfile

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "stacks"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not beside this checkout")
TRUTH = json.loads((DATA / "expected.json").read_text()) if DATA.is_dir() else {}
FOLDED = [name for name in TRUTH if "lines" in TRUTH[name]]
PERF = [name for name in TRUTH if "samples" in TRUTH[name]]
OTHERS = ["evented.speedscope.json", "simple.pprof", "two-sampled.speedscope.json"]


def read(name: str) -> tuple[StackProfile, ...]:
    return detect.read_file(DATA / name)


def test_no_file_is_left_out() -> None:
    """A file that is added to the data is tested too."""
    files = {path.name for path in DATA.iterdir()} - {"LICENSE", "README.md", "expected.json"}
    assert files == {*FOLDED, *PERF, *OTHERS}


@pytest.mark.parametrize("name", FOLDED)
def test_folded(name: str) -> None:
    """Lines, the sum of weights, lines that are no stacks, and the top leaves are as stated."""
    truth = TRUTH[name]
    (profile,) = read(name)
    assert (len(profile.samples), profile.total, profile.unread) == (
        truth["lines"],
        truth["sum_weight"],
        truth.get("invalid_lines", 0),
    )
    leaves: Counter[str] = Counter()
    for stack, weight in zip(profile.samples.stack.tolist(), profile.samples.weight.tolist(), strict=True):
        leaves[profile.frames_of(stack)[-1].function] += weight
    assert all(leaves[leaf] == weight for leaf, weight in truth.get("top_leaves", []))


@pytest.mark.parametrize("name", PERF)
def test_perf_script(name: str) -> None:
    """Samples, the sum of periods, frames, and who was sampled are as stated."""
    truth = TRUTH[name]
    (profile,) = read(name)
    samples = profile.samples
    assert len(samples) == truth["samples"]
    assert profile.total == truth["sum_period"]
    assert sum(len(profile.frame_ids_of(stack)) for stack in samples.stack.tolist()) == truth["frames"]
    assert int((samples.stack == -1).sum()) == truth["samples_without_frames"]
    seen = Counter(profile.threads[i] for i in samples.thread.tolist())
    stated = {(comm, int(pid)): count for comm, pid, event, count in truth["by_comm_pid_event"]}
    assert {(thread.name, thread.pid): count for thread, count in seen.items()} == stated
    assert {event for *_, event, _ in truth["by_comm_pid_event"]} == {profile.event}
    assert samples.at_ns.min() == 0
    assert samples.at_ns.max() > 0


def test_pprof() -> None:
    """Both sample types of the Go profile: the default one first; 10 ms a sample, so weights and counts agree."""
    cpu, samples = read("simple.pprof")
    assert (cpu.event, cpu.unit, samples.event, samples.unit) == ("cpu", "ns", "samples", "samples")
    assert cpu.total == 10_000_000 * samples.total
    assert samples.total == cpu.samples.count.sum() == 150
    chain = cpu.frames_of(int(cpu.samples.stack[0]))
    assert [frame.function for frame in chain] == ["runtime.main", "main.main", "main.delta", "main.beta"]
    assert (chain[-1].file.endswith("simple.go"), chain[-1].line) == (True, 18)


def test_speedscope_evented() -> None:
    """Between two events the open frames are a stack: the profile of folded-simple.txt, in the order of time."""
    (profile,) = read("evented.speedscope.json")
    rows = zip(profile.samples.stack.tolist(), profile.samples.weight.tolist(), strict=True)
    assert [("".join(f.function for f in profile.frames_of(s)), w) for s, w in rows] == [
        ("abc", 2),
        ("abd", 4),
        ("abc", 3),
        ("ab", 5),
    ]


def test_speedscope_sampled() -> None:
    """Two profiles of one unit are two threads."""
    (profile,) = read("two-sampled.speedscope.json")
    assert [thread.name for thread in profile.threads] == ["one", "two"]
    assert profile.unit == "ns"
    assert profile.total == 28e9
    assert set(profile.samples.thread.tolist()) == {0, 1}


@pytest.mark.parametrize("name", [*FOLDED, *PERF, *OTHERS])
def test_written_and_read_again_it_is_the_same(name: str) -> None:
    """Written in each format and read again, every profile keeps its weight, and a second time nothing changes."""
    for profile in read(name):
        for module in (folded, pprof, speedscope):
            first = module.write(profile)
            (again, *_) = detect.read(first, where="again")
            assert again.total == profile.total
            assert module.write(again) == first or _contents(module.write(again)) == _contents(first)


def _contents(data: bytes) -> list[tuple[str, float]]:
    """What a file says: thread, stack, weight."""
    (profile, *_) = detect.read(data, where="x")
    return sorted(
        (line.rsplit(" ", 1)[0], float(line.rsplit(" ", 1)[1])) for line in folded.write(profile).decode().splitlines()
    )
