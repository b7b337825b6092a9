"""Which loops one computation on whole arrays could replace."""

from __future__ import annotations

import textwrap

import pytest

from stepscope.derive.python import element_loops

INDEPENDENT = {
    "append": """
        def coordinates(flat):
            found = []
            for i in flat:
                found.append(i % 7)  # here
            return found
        """,
    "pairs": """
        def distances(rows):
            out = []
            for a in range(8):
                row = []
                for b in range(8):
                    row.append(abs(rows[a] - rows[b]))  # here
                out.append(row)
            return out
        """,
    "items": """
        def fill(out, rows):
            for n in range(8):
                out[n] = rows[n] + 1  # here
        """,
    "comprehension": """
        def draws(limits):
            return [draw(m) for m in limits]  # here
        """,
    "sum": """
        def total(rows):
            whole = 0
            for row in rows:
                whole += row.sum()  # here
            return whole
        """,
}
CARRIED = {
    "state": """
        def decode(rows, state):
            for row in rows:
                state = cell(row, state)  # here
            return state
        """,
    "last": """
        def rises(rows):
            last = 0
            for row in rows:
                found = row > last  # here
                last = row
        """,
    "items": """
        def running(out, rows):
            for n in range(1, 8):
                out[n] = out[n - 1] + rows[n]  # here
        """,
    "search": """
        def find(rows):
            for row in rows:
                if row > 3:  # here
                    break
        """,
    "variables": """
        def follow(model, target):
            for new, old in zip(model.trainable_variables, target.trainable_variables):
                old.assign(0.9 * old + 0.1 * new)  # here
        """,
    "while": """
        def halve(x):
            while x > 1:
                x = x / 2  # here
        """,
}


def _loops(text: str) -> tuple[element_loops.LoopLines, ...]:
    source = textwrap.dedent(text).strip("\n")
    line = next(number for number, row in enumerate(source.splitlines(), 1) if "# here" in row)
    return element_loops.around(source, line)


@pytest.mark.parametrize("text", INDEPENDENT.values(), ids=INDEPENDENT)
def test_turns_that_need_no_other(text: str) -> None:
    """What is appended, set, summed or drawn for each element is needed by no other turn."""
    assert _loops(text)


@pytest.mark.parametrize("text", CARRIED.values(), ids=CARRIED)
def test_turns_that_need_another_or_are_none_of_elements(text: str) -> None:
    """A state, an earlier item, an early end, and a loop over a model's variables forbid it."""
    assert _loops(text) == ()


def test_the_innermost_comes_first_and_a_carrying_loop_ends_the_list() -> None:
    """Both loops over pairs; of a loop over elements in one over time, only the first."""
    assert [(one.first, one.last) for one in _loops(INDEPENDENT["pairs"])] == [(5, 6), (3, 7)]
    both = """
        def run(rows, state):
            for row in rows:
                parts = [work(state, part) for part in row]  # here
                state = join(parts, state)
        """
    assert [(one.first, one.last) for one in _loops(both)] == [(3, 3)]


def test_every_loop_is_listed_with_whether_its_turns_are_independent() -> None:
    source = textwrap.dedent(
        """
        def run(rows, state):
            for row in rows:
                state = join([work(part) for part in row], state)
        """
    )
    found = [(one.first, one.independent) for one in element_loops.every(source, 4)]
    assert found == [(4, True), (3, False)]
    assert element_loops.every(source, 2) == ()


@pytest.mark.parametrize(
    ("body", "keeps"),
    [
        ("self.h = run(x, self.h)", True),
        ("self.last = run(x)", False),
        ("global last\n        last = run(x, last)", True),
        ("last = run(x)\n        return last", False),
    ],
)
def test_a_function_that_reads_what_it_leaves_keeps_a_state(body: str, *, keeps: bool) -> None:
    source = f"class Model:\n    def step(self, x):\n        {body}\n"
    assert element_loops.keeps_state(source, 3) is keeps


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("for row in rows:\n    run(row)\n", True),
        ("for _ in range(9):\n    run(x)\n", False),
        ("out = [run(row) for row in rows]\n", True),
        ("out = [run(x) for _ in rows]\n", False),
    ],
)
def test_a_loop_that_does_the_same_in_each_turn(source: str, *, reads: bool) -> None:
    (loop,) = element_loops.every(source, source.count("\n"))
    assert element_loops.reads_target(source, loop) is reads
