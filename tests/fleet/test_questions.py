"""Questions on parts whose answers are known."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fleet.made_parts import put, rows_of

from stepscope.fleet import questions
from stepscope.fleet.engine import Engine, UnreadableError, bound
from stepscope.fleet.flame import profile_of
from stepscope.fleet.prices import Prices
from stepscope.fleet.questions import Asked, Read
from stepscope.fleet.rows import Row
from stepscope.model.api.fleet import FleetCost, FleetJob, GroupBy

HOURS = (1.0, 2.0, 5.0)


@pytest.fixture(name="paths")
def _paths(tmp_path: Path) -> dict[int, list[str]]:
    """Jobs of 1, 2 and 5 hours: two of ann's, the last of bob's, on 4 GPUs and with another finding."""
    parts = [
        put(tmp_path, "s0", rows_of(wall_h=HOURS[0])),
        put(tmp_path, "s1", rows_of(wall_h=HOURS[1], end=1)),
        put(tmp_path, "s2", rows_of(user="bob", wall_h=HOURS[2], devices=4, finding="MEM007")),
    ]
    return {1: [str(path) for path in parts]}


def load(engine: Engine, paths: dict[int, list[str]], read: Read) -> None:
    """What a question reads."""
    engine.load(paths, read.kinds, read.columns)


def asked_top(paths: dict[int, list[str]], by: GroupBy, asked: Asked | None = None) -> dict[str, FleetCost]:
    """The answer by name."""
    with closing(Engine()) as engine:
        load(engine, paths, questions.read_of(by))
        return {one.name: one for one in questions.top(engine, asked or Asked(), by)}


def asked_jobs(paths: dict[int, list[str]], asked: Asked | None = None) -> list[FleetJob]:
    """The jobs in their order."""
    with closing(Engine()) as engine:
        load(engine, paths, questions.JOBS)
        return list(questions.jobs(engine, asked or Asked()))


def test_jobs(paths: dict[int, list[str]]) -> None:
    """The costliest first, with wall, CPU and device time, and what its findings would save on top of each other."""
    first, second, third = asked_jobs(paths)
    assert [one.session for one in (first, second, third)] == ["s2", "s1", "s0"]
    assert (first.wall_hours, first.cpu_hours, first.device_hours) == pytest.approx((5.0, 10.0, 20.0))
    assert first.lost_hours == pytest.approx(5.0 / 20)
    assert (second.exit_code, third.exit_code, first.money) == (1, 0, None)


def test_money(paths: dict[int, list[str]]) -> None:
    """Wall, CPU and device hours by their prices; one device has a price of its name."""
    prices = Prices(currency="EUR", host_hour=1.0, cpu_hour=0.1, device_hour=2.0)
    asked = Asked(prices=prices, sort="money")
    assert [one.money for one in asked_jobs(paths, asked)] == pytest.approx([5 + 40 + 1, 2.4, 1.2])
    named = Asked(prices=Prices(currency="EUR", device_hour=2.0, devices={"": 3.0}), sort="money")
    assert asked_jobs(paths, named)[0].money == pytest.approx(60.0)
    assert asked_top(paths, "user", asked)["bob"].money == pytest.approx(46.0)
    assert asked_top(paths, "finding", asked)["MEM007"].money == pytest.approx(0.5 * (1 + 4 * 2))


def test_findings(paths: dict[int, list[str]]) -> None:
    """Sums of what remedies save, with both ends of their intervals."""
    found = asked_top(paths, "finding")
    assert list(found) == ["MEM007", "INP003"]
    generator = found["INP003"]
    assert (generator.jobs, generator.users) == (2, 1)
    assert (generator.wall_low, generator.wall_hours, generator.wall_high) == pytest.approx((0.15, 0.3, 0.6))
    assert generator.lost_hours == pytest.approx(0.15)
    assert found["MEM007"].device_hours == pytest.approx(2.0)


def test_lines(paths: dict[int, list[str]]) -> None:
    """A line's share of the steady steps is wall time; thread and CPU time are sums."""
    (line,) = asked_top(paths, "line").values()
    assert (line.project, line.file, line.line, line.function, line.jobs) == ("nets", "train.py", 41, "make", 3)
    assert (line.wall_hours, line.thread_hours, line.cpu_hours) == pytest.approx((4.0, 4.0, 8.0), rel=1e-6)
    assert line.self_hours == pytest.approx(2.0)
    assert line.device_hours == pytest.approx(10.0, rel=1e-6)
    assert asked_top(paths, "line", Asked(library=True)) == {}


@pytest.mark.parametrize("by", ["user", "team", "project", "model", "host", "version"])
def test_groups_hold_all_jobs(paths: dict[int, list[str]], by: GroupBy) -> None:
    """Whatever jobs are grouped by, together they cost the same, and one of them failed."""
    found = asked_top(paths, by).values()
    assert sum(one.jobs for one in found) == 3
    assert sum(one.failed or 0 for one in found) == 1
    assert sum(one.wall_hours for one in found) == pytest.approx(sum(HOURS))


@pytest.mark.parametrize("by", ["user", "version"])
@pytest.mark.parametrize(
    ("mode", "ending", "failed"),
    [
        ("enable", "clean", 0),
        ("enable", "unknown", 1),
        ("enable", "memory", 1),
        ("attach", "outside", 0),
        ("import", "unknown", 0),
    ],
)
def test_an_exit_code_that_was_not_seen(tmp_path: Path, by: GroupBy, mode: str, ending: str, failed: int) -> None:
    """Is a failure only where the job did not end by itself."""
    words = {"end": ending, "mode": mode}
    rows = [row for row in rows_of() if row.name not in {*words, "exit_code"}]
    rows += [Row(kind="about", name=name, text=text) for name, text in words.items()]
    (found,) = asked_top({1: [str(put(tmp_path, "s0", rows))]}, by).values()
    assert (found.jobs, found.failed) == (1, failed)


def test_filters(paths: dict[int, list[str]]) -> None:
    """Each leaves out the jobs that differ; a word with a quote is a word."""
    for filters, sessions in (
        ({"user": "ann"}, {"s0", "s1"}),
        ({"finding": "MEM007"}, {"s2"}),
        ({"user": "ann", "finding": "MEM007"}, set()),
        ({"project": "nets"}, {"s0", "s1", "s2"}),
        ({"user": "x' OR '1'='1"}, set()),
    ):
        assert {one.session for one in asked_jobs(paths, Asked(filters=filters))} == sessions


def test_stacks_are_added_up(paths: dict[int, list[str]]) -> None:
    """One profile of all jobs, whose weight is theirs together; groups can stand at the root."""
    with closing(Engine()) as engine:
        load(engine, paths, questions.STACKS)
        found = questions.stacks(engine, Asked(), "python", None)
    assert dict(found) == {
        "main (train.py);make (train.py)": round(4 * 3.6e12),
        "main (train.py)": round(4 * 3.6e12),
    }
    profile = profile_of(found, "python")
    assert profile.total == 8 * 3.6e12
    assert [frame.function for frame in profile.frames_of(1)] == ["main", "make"]
    with closing(Engine()) as engine:
        load(engine, paths, questions.STACKS)
        rooted = questions.stacks(engine, Asked(), "python", "user")
    assert {text.partition(";")[0] for text, _ in rooted} == {"user ann", "user bob"}


def test_two_versions_of_the_format(paths: dict[int, list[str]], tmp_path: Path) -> None:
    """A part of a later version, with a column more, counts beside those of this one."""
    table = pq.read_table(paths[1][0])
    later = table.append_column("energy_j", pa.array([1.5] * len(table), pa.float64()))
    later = later.set_column(0, "session", pa.array(["s9"] * len(table)))
    pq.write_table(later, tmp_path / "later.parquet")
    both = {1: paths[1], 2: [str(tmp_path / "later.parquet")]}
    assert {one.session for one in asked_jobs(both)} == {"s0", "s1", "s2", "s9"}
    assert asked_top(both, "finding")["INP003"].jobs == 3


@pytest.mark.parametrize(
    ("folder", "neighbour"),
    [("of [a-b]", "of a"), ("what?", "whatx"), ("all *", "all jobs"), ("kind=finding/project=other", "others")],
)
def test_a_folder_is_no_pattern(tmp_path: Path, folder: str, neighbour: str) -> None:
    """Whatever characters its path has, the parts in it are read, no others, and it makes no column."""
    made = [put(tmp_path / folder, session, rows_of()) for session in ("s0", "s1")]
    other = put(tmp_path / "elsewhere", "other", rows_of()).read_bytes()
    for path in made:
        of_same_name = tmp_path / neighbour / path.relative_to(tmp_path / folder)
        of_same_name.parent.mkdir(parents=True, exist_ok=True)
        of_same_name.write_bytes(other)
    paths = {1: [str(path) for path in made]}
    assert {one.session for one in asked_jobs(paths)} == {"s0", "s1"}
    assert asked_top(paths, "project")["nets"].jobs == 2


def test_a_damaged_file(paths: dict[int, list[str]]) -> None:
    """Is an error of its kind."""
    cut = Path(paths[1][1])
    cut.write_bytes(cut.read_bytes()[:-100])
    with closing(Engine()) as engine, pytest.raises(UnreadableError):
        load(engine, paths, questions.JOBS)


def test_texts_hold_no_words_of_users() -> None:
    """Values are bound, and identifiers are columns."""
    assert bound("a = {user:String} ORDER BY {order:Identifier}", {"order": "money"}) == (
        "a = $user ORDER BY money",
        {"user"},
    )
    with pytest.raises(ValueError, match="no column"):
        bound("{order:Identifier}", {"order": "money; DROP TABLE jobs"})


def test_same_sql_in_one_process(paths: dict[int, list[str]]) -> None:
    """What a question says is what DuckDB says of the files as they are."""
    asked = "SELECT sum(time_ns) FROM read_parquet(?) WHERE kind = 'finding' AND name = 'INP003'"
    ((whole,),) = duckdb.connect().execute(asked, [paths[1]]).fetchall()
    assert asked_top(paths, "finding")["INP003"].wall_hours == pytest.approx(float(whole) / 3.6e12, rel=1e-12)
