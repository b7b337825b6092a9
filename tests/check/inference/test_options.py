"""Options of a command line: what the attributes of parsed arguments are."""

from __future__ import annotations

import pytest
from tests.check.asking import Asked
from tests.check.checking import codes

PROGRAM = """
import argparse

def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peak-lr", "-p", type=float, default=0.05)
    parser.add_argument("-n", "--steps", type=int)
    parser.add_argument("name")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--sizes", nargs="+", type=int)
    parser.add_argument("--one", nargs="?", type=int)
    parser.add_argument("-x", dest="where")
    parser.add_argument("--made", type=make)
    parser.add_argument("--rate", default=3)
    parser.add_argument("--path", default=None)
    return parser.{parse}()

args{rest} = parse()
ask(args.{name})
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("peak_lr", "Python number"),
        ("steps", "Python number"),
        ("name", "Python string"),
        ("fast", "bool"),
        ("one", "Python number"),
        ("where", "Python string"),
        ("rate", "Python number"),
        ("path", "Python string"),
        ("made", "unknown"),
        ("n", "unknown"),
        ("x", "unknown"),
        ("absent", "unknown"),
    ],
)
@pytest.mark.parametrize(("parse", "rest"), [("parse_args", ""), ("parse_known_args", ", _")])
def test_tags(name: str, expected: str, parse: str, rest: str) -> None:
    """An option is what its type, action or default says; what is not written down is not known."""
    assert Asked(PROGRAM.format(name=name, parse=parse, rest=rest)).tags == [expected]


def test_a_list_of_numbers_is_one() -> None:
    """Elements of an option with several values have its type."""
    assert Asked(PROGRAM.format(name="sizes[0]", parse="parse_args", rest="")).tags == ["Python number"]


def test_a_schedule_of_options_is_a_python_number() -> None:
    """A learning rate that a function computes from options and the step retraces; one that stays does not."""
    program = """
        import argparse, math
        import tensorflow as tf

        parser = argparse.ArgumentParser()
        parser.add_argument("--peak", type=float, default=0.1)
        parser.add_argument("--steps", type=int, default=1000)
        args = parser.parse_args()

        def schedule(step, peak, steps):
            return peak * 0.5 * (1.0 + math.cos(math.pi * step / steps))

        @tf.function
        def train(x, rate):
            return x * rate

        for step in range(args.steps):
            train(tf.zeros([4]), {rate})
    """
    assert codes(program.replace("{rate}", "schedule(step, args.peak, args.steps)")) == ["TFF001"]
    assert codes(program.replace("{rate}", "args.peak")) == []
    assert codes(program.replace("{rate}", "tf.constant(schedule(step, args.peak, args.steps))")) == []
