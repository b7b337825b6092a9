"""Which files are ranks of one job, and the sentence for each that is not."""

from __future__ import annotations

import pytest

from stepscope.derive.cluster import rank_files
from stepscope.derive.cluster.rank_files import RankFiles
from stepscope.tables.optrace import TraceSource

S = 1_000_000_000
BEGIN = 1_790_857_026 * S


def _torch(name: str, rank: int = -1, size: int = 2, *, at: float = 0.0, backend: str = "gloo") -> TraceSource:
    """A recording of two seconds by PyTorch's profiler."""
    return TraceSource(
        format="kineto",
        name=name,
        started_unix_ns=BEGIN + int(at * S),
        dur_ns=2 * S,
        rank=rank,
        world_size=size if rank >= 0 else 0,
        backend=backend if rank >= 0 else "",
    )


def _host(name: str, *, at: float = 0.0, host: str = "") -> TraceSource:
    begin = BEGIN + int(at * S)
    return TraceSource(format="xplane", name=name, hostnames=(host,) if host else (), started_unix_ns=begin, dur_ns=S)


def _of(*sources: TraceSource) -> RankFiles:
    return rank_files.of((f"import-{n}", source) for n, source in enumerate(sources))


def _files(found: RankFiles) -> list[str]:
    return [one.source.name for one in found.ranks]


def test_ranks_are_in_order_and_missing_ones_named() -> None:
    found = _of(_torch("c", 3, 4), _torch("a", 0, 4), _torch("b", 2, 4))
    assert [one.name for one in found.ranks] == ["rank 0", "rank 2", "rank 3"]
    assert [one.trace for one in found.ranks] == ["import-1", "import-2", "import-0"]
    assert (found.tasks, found.missing, found.told) == (4, ("rank 1",), ())
    assert found.missing_text == "rank 1 of the job's 4 ranks has no file here"
    assert found.launcher == "torch.distributed, gloo"


def test_of_many_missing_ranks_some_are_named() -> None:
    found = _of(_torch("a", 0, 1000), _torch("b", 1, 1000))
    assert found.missing_text.endswith("rank 8, rank 9 and 990 more of the job's 1,000 ranks have no file here")


def test_a_job_of_unknown_size_lacks_what_lies_between_its_ranks() -> None:
    found = _of(_torch("a", 0, 0), _torch("b", 2, 0))
    assert (found.tasks, found.missing) == (3, ("rank 1",))


@pytest.mark.parametrize(
    ("other", "described"),
    [
        (_torch("other", 2, 4), "rank 2 of 4, gloo"),
        (_torch("other", 1, 2, backend="nccl"), "rank 1 of 2, nccl"),
        (_torch("other", 1, 8, at=9.0), "rank 1 of 8, gloo"),
    ],
)
def test_a_file_of_another_job(other: TraceSource, described: str) -> None:
    found = _of(other, _torch("a", 0), _torch("b", 1))
    assert _files(found) == ["a", "b"]
    (told,) = found.told
    assert told.startswith(f"other ({described}) is of another job than ")
    assert told.endswith(", gloo): it is not compared")


def test_two_jobs_of_a_rank_each_are_not_compared() -> None:
    found = _of(_torch("a", 0, 2), _torch("b", 1, 4))
    assert found.ranks == ()
    assert found.told == ("b (rank 1 of 4, gloo) is of another job than a (rank 0 of 2, gloo): it is not compared",)


def test_one_rank_twice_at_one_time() -> None:
    found = _of(_torch("a", 0), _torch("b", 1), _torch("copy", 1, at=0.5))
    assert _files(found) == ["a", "copy"]
    assert found.told == (
        "b and copy are both rank 1, at the same time (of two jobs, or one file twice): copy is compared",
    )


def test_of_several_cycles_the_newest_is_compared() -> None:
    """Each rank has recorded twice, as ``schedule(repeat=2)`` has it."""
    cycles = [_torch(f"{rank}-{cycle}", rank, at=10.0 * cycle + 0.1 * rank) for rank in (0, 1) for cycle in (1, 2)]
    found = _of(*cycles)
    assert _files(found) == ["0-2", "1-2"]
    assert found.told == (
        "0-1 and 0-2 are both rank 0, at different times: 0-2 is compared",
        "1-1 and 1-2 are both rank 1, at different times: 1-2 is compared",
    )


def test_a_rank_without_the_newest_cycle_is_compared_by_its_nearest() -> None:
    found = _of(_torch("0-1", 0), _torch("0-2", 0, at=10), _torch("1-0", 1, at=-20), _torch("1-1", 1, at=0.1))
    assert _files(found) == ["0-2", "1-1"]


def test_cycles_of_one_rank_are_no_job() -> None:
    assert _of(_torch("a", 0), _torch("b", 0, at=10)) == RankFiles()


def test_files_of_two_runs_of_a_job() -> None:
    found = _of(_torch("monday", 0), _torch("tuesday", 1, at=86_400))
    assert found.ranks == ()
    assert found.told == (
        (
            "monday (rank 0 of 2, gloo) was recorded 24 h apart from tuesday: of another run or other steps, it is not "
            "compared"
        ),
    )


def test_files_without_a_rank() -> None:
    said = (
        "x says no rank (distributedInfo): torch.distributed was not initialised when the profiler started; not "
        "compared with other ranks"
    )
    found = _of(_torch("a", 0, 3), _torch("b", 1, 3), _torch("x"))
    assert (_files(found), found.told, found.missing) == (["a", "b"], (said,), ("rank 2",))
    assert _of(_torch("a", 0), _torch("x")).told == (said,)
    assert _of(_torch("x"), _torch("y")).told == (said.replace("x says", "x, y say"),)


def test_files_of_no_distributed_job() -> None:
    """One alone, and two of different times."""
    assert _of(_torch("x")) == RankFiles()
    assert _of(_torch("x"), _torch("y", at=60)) == RankFiles()
    assert _of() == RankFiles()


def test_hosts_of_one_time() -> None:
    found = _of(_host("b.xplane.pb", host="b"), _host("a.xplane.pb", host="a", at=0.1))
    assert [(one.name, one.number) for one in found.ranks] == [("host a", -1), ("host b", -1)]
    assert (found.tasks, found.missing, found.missing_text) == (2, (), "")


@pytest.mark.parametrize(
    "files",
    [
        (_host("a", host="a"), _host("b", host="b", at=5)),
        (_host("jax", host="a"), _host("tf", host="a")),
        (_host("a"), _host("b")),
        (_host("a", host="a"),),
    ],
    ids=["another time", "one host", "hosts not known", "one"],
)
def test_hosts_that_are_none(files: tuple[TraceSource, ...]) -> None:
    assert _of(*files) == RankFiles()
