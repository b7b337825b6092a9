"""The benchmark of speed and survival: what it counts as a failure, and what it times."""

from pathlib import Path

import check as bench

GOOD = "import tensorflow as tf\n\nprint(tf.zeros([2]))\n"


def test_a_broken_file_is_skipped_not_a_failure(tmp_path: Path) -> None:
    """A tree with a file that is no Python survives, and the file is counted with its reason."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "good.py").write_text(GOOD)
    (tree / "old.py").write_text("print 'hello'\n")
    (tree / "latin.py").write_bytes("# -*- coding: latin-1 -*-\nname = '\xe9'\n".encode("latin-1"))
    done = bench.survive(tree, tmp_path / "cache")
    assert done.survived
    assert (done.files, done.lines) == (3, 6)
    assert sum(done.skipped.values()) == 1


def test_a_process_that_dies_is_a_failure(tmp_path: Path) -> None:
    """A tree that is not there ends the process with an error, which is listed."""
    done = bench.survive(tmp_path / "absent", tmp_path / "cache")
    assert not done.survived
    assert done.failures


def test_tables_say_how_many_survived(tmp_path: Path) -> None:
    """The table has a line for each tree, the head counts them."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "good.py").write_text(GOOD)
    table = bench.crash_table([bench.survive(tree, tmp_path), bench.survive(tmp_path / "absent", tmp_path)])
    assert "1 of 2 trees" in table
    assert "| tree | 1 | 3 | 0 | 0 | 0 | none | none |" in table


def test_speed_is_of_cold_and_warm(tmp_path: Path) -> None:
    """Both are timed, beside the yardstick; the table states the goals, and times per 100,000 lines."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "good.py").write_text(GOOD)
    rows = bench.speed(tree, 1)
    assert [row.name for row in rows[:3]] == ["stepscope check, cold", "stepscope check, warm", "ast.parse"]
    assert rows[2].yards == 1.0
    table = bench.speed_table(tree, [bench.Row(name="one", wall=0.06, cpu=0.03, yards=2.5)], 1)
    assert "3 s for 100,000 lines cold" in table
    assert "| one | 0.06 | 0.03 | 2000.00 | 1000.00 | 2.50 |" in table
