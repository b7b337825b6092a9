"""What a program logs, compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.use_cases.fix import said

KERAS = """Epoch 1/2
 1/10 ━━━━━━━━━━━━━━━━━━━━ 3s 402ms/step - accuracy: 0.1 - loss: 9.0
{way}10/10 ━━━━━━━━━━━━━━━━━━━━ {time}s {pace}ms/step - accuracy: 0.5000 - loss: 0.6931
{{"samples": 320, "seconds": {time}.125}}
"""


def test_times_and_progress_on_its_way_are_no_difference() -> None:
    one = said.of(KERAS.format(way="", time=2, pace=31))
    other = said.of(KERAS.format(way=" 4/10 ━━━━━━ 1s 9ms/step - loss: 3.2\n", time=4, pace=77))
    assert said.difference(one, other) == ""
    assert one.count == 7


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("took 3.2 s", "took 7.9 s"),
        ("elapsed: 3.2", "elapsed: 3.9"),
        ("done in 2 min 30 s", "done in 3 min 1 s"),
        ("2026-11-30 16:10:00 ready", "2026-11-30 17:12:03 ready"),
        ("812.5 samples/s", "912.5 samples/s"),
        ("<object at 0x7f01>", "<object at 0x7f99>"),
        (
            " 10%|█         | 1/10 [00:01<00:09]\r100%|██████████| 10/10 [00:09<00:00]",
            "100%|██████████| 10/10 [00:07<00:00]",
        ),
    ],
)
def test_no_difference(before: str, after: str) -> None:
    assert said.difference(said.of(before), said.of(after)) == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loss 0.50", "loss 0.51"),
        ("loss 1e-3", "loss 1e-4"),
        ("loss 0.5", "loss nan"),
        ("learning_rate: 0.1", "learning_rate: 0.01"),
        ("timesteps 10", "timesteps 12"),
        ("loss 0.51 min 0.2 max 0.9", "loss 0.52 min 0.2 max 0.9"),
        ("saved to a", "saved to b"),
        ("step 1\nstep 2", "step 1"),
        ("1/1 ━━━━ 0s 20ms/step\n1/1 ━━━━ 0s 20ms/step", "1/1 ━━━━ 0s 20ms/step"),
    ],
)
def test_a_difference_is_named(before: str, after: str) -> None:
    assert said.difference(said.of(before), said.of(after))


def test_what_frameworks_write_to_the_errors_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.out").write_text("loss 0.5\n")
    (tmp_path / "a.log").write_text(
        "2026-11-30 16:10:00.123: I tensorflow/core/platform/cpu_feature_guard.cc:210] This\n"
        "W0000 00:00:1764.5 12 gpu.cc:1] no\nWARNING:tensorflow:5 out of the last 5 calls\nINFO:root:loss 0.4\n"
    )
    found = said.read(tmp_path / "a.out", tmp_path / "a.log")
    assert found.lines == ("loss #", "INFO:root:loss #")


def test_runs_that_log_nothing_prove_nothing() -> None:
    silent = said.of("done in 3 s\n")
    assert said.not_repeatable([silent, silent]) == "it logs no number that could be compared"
    assert said.not_repeatable([said.of("loss 1")]) == "fewer than two unchanged runs"
    assert said.not_repeatable([said.of("loss 1"), said.of("loss 2")]).startswith(
        "two unchanged runs differ: 1 became 2"
    )


def test_close_numbers_are_the_same_mathematics_only() -> None:
    one, other = said.of("loss 123.4561"), said.of("loss 123.4566")
    assert said.difference(one, other)
    assert said.difference(one, other, close=said.CLOSE) == ""
    assert said.difference(said.of("loss 0.1"), said.of("loss 0.1001"), close=said.CLOSE)
    assert said.difference(said.of("loss nan"), said.of("loss 0.1"), close=said.CLOSE)
