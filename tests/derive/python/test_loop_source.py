"""What a statement of the loop does for the step's call, read from its source."""

from __future__ import annotations

import textwrap
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.derive.python.loop_source import (
    Role,
    SourceLoop,
    feeds,
    loops_around,
    role_of_line,
    role_within,
)

CASES: dict[str, tuple[str, Role]] = {
    "makes the argument": (
        """
        for i in range(9):
            x = load(i)  # HOT
            loss = step(x)  # CALL
        """,
        "feeds",
    ),
    "makes what makes the argument": (
        """
        for i in range(9):
            raw = read(i)  # HOT
            x, y = split(raw)
            loss = step(x, y)  # CALL
        """,
        "feeds",
    ),
    "the loop's own iterable": (
        """
        for x in batches():  # HOT
            step(x)  # CALL
        """,
        "feeds",
    ),
    "an argument made in the call": (
        """
        for i in range(9):
            step(load(i))  # CALL HOT
        """,
        "call",
    ),
    "a comprehension that is the loop": (
        """
        losses = [step(x) for x in batches()]  # CALL HOT
        """,
        "call",
    ),
    "the iterable of a comprehension": (
        """
        losses = [
            step(x)  # CALL
            for x in batches()  # HOT
        ]
        """,
        "unknown",
    ),
    "filled in place": (
        """
        while True:
            x[:] = read()  # HOT
            step(x)  # CALL
        """,
        "feeds",
    ),
    "in a branch": (
        """
        for i in range(9):
            if i % 2:
                x = load(i)  # HOT
            step(x)  # CALL
        """,
        "feeds",
    ),
    "inside of with": (
        """
        for i in range(9):
            with open(i) as f:
                x = f.read()  # HOT
            step(x)  # CALL
        """,
        "feeds",
    ),
    "made for the next round": (
        """
        for i in range(9):
            step(x)  # CALL
            x = load(i)  # HOT
        """,
        "feeds",
    ),
    "reads the result": (
        """
        for x in data:
            loss = step(x)  # CALL
            draw(loss)  # HOT
        """,
        "uses",
    ),
    "reads what was made of the result": (
        """
        for x in data:
            loss = step(x)  # CALL
            mean = float(loss)
            history.append(mean)
            draw(history)  # HOT
        """,
        "uses",
    ),
    "over several lines": (
        """
        for x in data:
            loss = step(
                x,
            )  # CALL
            draw(
                loss,  # HOT
            )
        """,
        "uses",
    ),
    "in try": (
        """
        for x in data:
            try:
                loss = step(x)  # CALL
            finally:
                draw(loss)  # HOT
        """,
        "uses",
    ),
    "neither": (
        """
        for x in data:
            loss = step(x)  # CALL
            tidy()  # HOT
        """,
        "other",
    ),
    "another loop inside": (
        """
        for x in data:
            loss = step(x)  # CALL
            for n in range(3):
                draw(loss, n)  # HOT
        """,
        "uses",
    ),
    "the next token": (
        """
        for _ in range(9):
            logits, state = step(token, state)  # CALL
            token = choose(logits)  # HOT
        """,
        "carries",
    ),
    "made of what was kept of the results": (
        """
        for _ in range(9):
            x = embed(tokens[-1])  # HOT
            logits = step(x)  # CALL
            tokens.append(argmax(logits))
        """,
        "carries",
    ),
    "kept in an attribute": (
        """
        while not self.done:
            x = embed(self.tokens)  # HOT
            self.tokens = extend(self.tokens, self.step(x))  # CALL
        """,
        "carries",
    ),
    "losses in another attribute": (
        """
        for i in range(9):
            x = self.load(i)  # HOT
            loss = self.step(x)  # CALL
            self.losses.append(loss)
            self.best = min(self.best, loss)
        """,
        "feeds",
    ),
    "a progress bar that is told the results": (
        """
        for x in bar:  # HOT
            loss = step(x)  # CALL
            bar.set_postfix(loss=float(loss))
        """,
        "feeds",
    ),
    "made of what a progress bar yields": (
        """
        for x in bar:
            y = load(x)  # HOT
            loss = step(y)  # CALL
            bar.set_postfix(loss=float(loss))
        """,
        "feeds",
    ),
    "a writer of results": (
        """
        for i in range(9):
            x = load(i, rng)  # HOT
            loss = step(x)  # CALL
            writer.write(loss)
            shown = rng.random() * loss
        """,
        "feeds",
    ),
    "outside of the loop": (
        """
        setup()  # HOT
        for x in data:
            step(x)  # CALL
        """,
        "unknown",
    ),
    "no loop": (
        """
        x = load()  # HOT
        step(x)  # CALL
        """,
        "unknown",
    ),
    "no Python": (
        """
        for x in data
            step(x)  # CALL
            draw(x)  # HOT
        """,
        "unknown",
    ),
}


def role(text: str) -> Role:
    """The role of the line marked HOT for the call marked CALL."""
    lines = textwrap.dedent(text).splitlines()
    call = next(i for i, line in enumerate(lines, 1) if "CALL" in line)
    return role_of_line("\n".join(lines), call, next(i for i, line in enumerate(lines, 1) if "HOT" in line))


@pytest.mark.parametrize("case", CASES)
def test_role(case: str) -> None:
    """By def-use over the loop's body a line feeds the call, is its own statement, uses its result, or does neither."""
    text, expected = CASES[case]
    assert role(text) == expected


_PIECES = st.lists(
    st.sampled_from(
        ["for x in y:\n", "while a:\n", "    ", "x = f(x)\n", "step(x)\n", "try:\n", "with x as y:\n", "match x:\n",
         "case 1:\n", "def f():\n", "class C:\n", "else:\n", "pass\n", "async for x in y:\n", "lambda: (yield)\n",
         "x[1], y.z = 1, 2\n", "del x\n", "(x := 3)\n", "\0", "\t", "\\\n"]
    ),
    max_size=20,
).map("".join)  # fmt: skip


@given(text=st.text() | _PIECES, call=st.integers(-2, 30), hot=st.integers(-2, 30))
def test_any_text_has_a_role(text: str, call: int, hot: int) -> None:
    """No text and no line number make it raise."""
    assert role_of_line(text, call, hot) in get_args(Role)


def test_a_deeply_nested_text_has_a_role() -> None:
    """Source that the parser itself gives up on is unknown, not an error."""
    assert role_of_line("for x in y:\n  " + "(" * 5000 + ")" * 5000, 1, 2) == "unknown"


FED = """\
saver = make()

def train(x):
    given = saver
    with scope() as name:
        rows = name.rows
        callbacks = [given, rows]
    for _ in x:
        fit(x,
            callbacks)
    after = callbacks
"""


@pytest.mark.parametrize(
    ("line", "call", "expected"),
    [(4, 9, True), (4, 10, True), (6, 9, True), (5, 9, True), (7, 9, True), (11, 9, False), (9, 9, False),
     (1, 9, False), (9, 4, False), (99, 9, False)],
)  # fmt: skip
def test_what_feeds_a_call(line: int, call: int, expected: bool) -> None:
    """A statement feeds a call if names carry what it makes there, within the call's function."""
    assert feeds(FED, line, call) is expected


def test_nothing_feeds_what_does_not_parse() -> None:
    """Python of another version has no statements."""
    assert not feeds("print 'x'\n", 1, 1)


@pytest.mark.parametrize(
    ("statement", "entered", "role"),
    [
        ("log.write(i, train_step(x))", "RunLog.write", "uses"),
        ("log.write(i, values=float(self.train_step(x)[0]))", "RunLog.write", "uses"),
        ("loss = train_step(make_batch(i))", "make_batch", "feeds"),
        ("loss = train_step(*self.pad(make_batch(i)))", "pad", "feeds"),
        ("loss = train_step(x)", "", "feeds"),
        ("for (", "write", "feeds"),
    ],
)
def test_code_that_the_statement_of_the_call_enters(statement: str, entered: str, role: str) -> None:
    """What takes the step's result in one statement with it uses it; what makes its arguments feeds it."""
    assert role_within(statement, 1, entered, "train_step") == role


@pytest.mark.parametrize(
    ("statement", "entered", "role"),
    [
        ("logits = step(embed(token))", "embed", "carries"),
        ("logits = step(embed(token), load(batch))", "load", "feeds"),
        ("token = choose(step(token))", "choose", "uses"),
    ],
)
def test_code_in_the_call_s_statement_that_is_given_earlier_results(statement: str, entered: str, role: str) -> None:
    """What makes the arguments of an earlier call's results carries them; beside it other arguments are input."""
    text = f"for batch in data:\n    {statement}\n    token = choose(logits)\n"
    assert role_within(text, 2, entered, "step") == role


def test_a_part_of_the_model_before_the_call_is_no_input() -> None:
    """A statement known to compute a part of the model, and what is made of it, carries; what it is given is input."""
    text = "for i in data:\n    x = load(i)\n    h = stem(x)\n    g = tf.nn.relu(h)\n    loss = step(g)\n"
    assert [role_of_line(text, 5, line, {3}) for line in (2, 3, 4)] == ["feeds", "carries", "carries"]
    assert [role_of_line(text, 5, line) for line in (2, 3, 4)] == ["feeds"] * 3


@pytest.mark.parametrize("text", ["-" * 100_000 + "1", "+".join(["x"] * 100_000)])
def test_a_source_that_the_parser_gives_up_on(text: str) -> None:
    """Source too deep for Python's own parser is unknown, not an error."""
    assert role_of_line(f"for x in y:\n  {text}\n", 1, 2) == "unknown"


NESTED = """
for epoch in range(9):
    order = shuffled(
        data)
    for batch in batches(
        order
    ):
        step(batch)

    def later():
        while True:
            step(0)
    report()
"""


@pytest.mark.parametrize(
    ("line", "loops"),
    [
        (8, (SourceLoop(5, 7, 8), SourceLoop(2, 2, 13))),
        (4, (SourceLoop(2, 2, 13),)),
        (12, (SourceLoop(11, 11, 12),)),
        (1, ()),
    ],
    ids=["inner", "outer", "function", "none"],
)
def test_loops_around_a_line(line: int, loops: tuple[SourceLoop, ...]) -> None:
    """Innermost first, within the line's own function, each with the last line of its head."""
    assert loops_around(NESTED, line) == loops


def test_no_loops_in_what_does_not_parse() -> None:
    """A source of another Python has no loops."""
    assert loops_around("for x in :\n    step(x)", 2) == ()


def test_a_counter_on_the_line_of_the_call_is_not_what_it_returned() -> None:
    """What the next batch is taken by is moved on where the step is called: the batch is input all the same."""
    text = "while True:\n    b = prepare(x[done % 60]) if slow else x[done]\n    step(b); done += 64\n"
    assert role_of_line(text, 3, 2) == "feeds"
    assert role_of_line(text.replace("done += 64", "done = done + 64"), 3, 2) == "feeds"
    assert role_of_line(text.replace("step(b); done += 64", "done = step(b)"), 3, 2) == "carries"
    text = "while True:\n    out = step(embed(done)); done += 1\n"
    assert role_within(text, 2, "embed", "step") == "feeds"
    assert role_within(text.replace("embed(done)", "embed(out)"), 2, "embed", "step") == "carries"
