"""Actions on statements, loops and decorators."""

from __future__ import annotations

import textwrap

import pytest
from tests.check.fixing.planning import fixed, plan

from stepscope.check.fixing.edits import apply
from stepscope.check.fixing.fixer import Fixer


def test_hoist_statement() -> None:
    """A statement moves before its loop; the comment on its line stays where it is."""
    text = """\
        def train(ds):
            # all epochs
            for e in range(9):
                model.compile("adam")  # once is enough
                model.fit(ds)
        """
    after = """\
        def train(ds):
            # all epochs
            model.compile("adam")
            for e in range(9):
                # once is enough
                model.fit(ds)
        """
    assert fixed(text, "hoist-statement", 'model.compile("adam")', "for e in range(9):") == textwrap.dedent(after)


def test_hoist_of_several_lines() -> None:
    """Lines of a statement keep how they stand to each other; tabs stay tabs."""
    text = "while x:\n\tif y:\n\t\tf = g(\n\t\t\t1,\n\t\t)\n\tf()\n"
    done = fixed(text, "hoist-statement", "f = g(\n\t\t\t1,\n\t\t)", "while x:")
    assert done == "f = g(\n\t1,\n)\nwhile x:\n\tif y:\n\t\tpass\n\tf()\n"


def test_hoist_function() -> None:
    """A function moves with its decorators."""
    text = "for x in y:\n    @tf.function\n    def f(a):\n        return a\n\n    f(x)\n"
    done = fixed(text, "hoist-statement", "def f(a):", "for x in y:")
    assert done == "@tf.function\ndef f(a):\n    return a\nfor x in y:\n\n    f(x)\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("for x in y: f(1)\n", "no separate statement is at line 1"),
        ("for x in y:\n    f(1); g()\n", "no separate statement is at line 2"),
        ('for x in y:\n    f(1, """\n""")\n', "it contains a multi-line string"),
    ],
)
def test_hoist_refused(text: str, reason: str) -> None:
    """What shares its line, or holds a text of several lines, stays."""
    snippet = 'f(1, """\n""")' if '"""' in text else "f(1)"
    assert fixed(text, "hoist-statement", snippet, "for x in y:") == f"refused: {reason}"


def test_hoist_expression() -> None:
    """An expression gets a name before the loop that nothing else has."""
    text = "iterator = 1\nfor step in range(5):\n    x = next(iter(ds))  # batch\n"
    done = fixed(text, "hoist-expression", "iter(ds)", "for step in range(5):", name="iterator")
    commented = text.replace("iterator = 1", "# an iterator")
    other = fixed(commented, "hoist-expression", "iter(ds)", "for step in range(5):", name="iterator")
    assert other.splitlines()[1] == "iterator = iter(ds)", "a word in a comment is no name"
    assert done == "iterator = 1\niterator_2 = iter(ds)\nfor step in range(5):\n    x = next(iterator_2)  # batch\n"


def test_hoist_expression_inner() -> None:
    """What stands in its place may use the name."""
    text = "for step in range(5):\n    x = first(ds)\n"
    done = fixed(text, "hoist-expression", "first(ds)", "for step in range(5):", name="it", inner="next($0)")
    assert done == "it = first(ds)\nfor step in range(5):\n    x = next(it)\n"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("a = 1\nf(1)\nb = 2\n", "a = 1\nb = 2\n"),
        ("if a:\n    f(1)\n", "if a:\n    pass\n"),
        ("if a:\n    f(1)  # debug\nb = 2\n", "if a:\n    pass  # debug\nb = 2\n"),
        ("a = 1\nf(1)  # debug\n", "a = 1\n# debug\n"),
        ("# above\nf(1)\nb = 2\n", "# above\nb = 2\n"),
        ("a = 1\nf(1)", "a = 1\n"),
    ],
)
def test_remove_statement(text: str, after: str) -> None:
    """A statement's lines go; comments stay, and no block is left empty."""
    assert fixed(text, "remove-statement", "f(1)") == after


@pytest.mark.parametrize(
    ("where", "after"),
    [
        ("before", "a = 1\nkeras.backend.clear_session()\nfor x in y:\n    f(x)\n    g(x)\nb = 2\n"),
        ("after", "a = 1\nfor x in y:\n    f(x)\n    g(x)\nkeras.backend.clear_session()\nb = 2\n"),
        ("first", "a = 1\nfor x in y:\n    keras.backend.clear_session()\n    f(x)\n    g(x)\nb = 2\n"),
        ("last", "a = 1\nfor x in y:\n    f(x)\n    g(x)\n    keras.backend.clear_session()\nb = 2\n"),
    ],
)
def test_insert_statement(where: str, after: str) -> None:
    """A statement is added around a loop, or in its body."""
    text = "import keras\na = 1\nfor x in y:\n    f(x)\n    g(x)\nb = 2\n"
    done = fixed(text, "insert-statement", "for x in y:", where=where, code="keras.backend.clear_session()")
    assert done == f"import keras\n{after}"


def test_insert_at_the_end() -> None:
    """A file that ends without a line ending gets the statement on a line of its own, and still ends without."""
    assert fixed("f(1)", "insert-statement", "f(1)", where="after", code="g()\nh()") == "f(1)\ng()\nh()"


def test_replace_statement() -> None:
    """A statement becomes others, which hold texts of its parts."""
    text = "if a:\n    r = concat(r, x + 1)  # grow\n"
    done = fixed(text, "replace-statement", "r = concat(r, x + 1)", "x + 1", code="parts.append($1)\nn += 1")
    assert done == "if a:\n    parts.append(x + 1)\n    n += 1  # grow\n"


def test_decorators() -> None:
    """A decorator goes with its line, and a new one stands right above the def."""
    text = "class A:\n    @first\n    @tf.function(jit=True)  # fast\n    def f(self): pass\n"
    done = fixed(text, "remove-decorator", "tf.function(jit=True)")
    assert done == "class A:\n    @first\n    # fast\n    def f(self): pass\n"
    text = "import tensorflow as tf\n@first\nasync def f(): pass\n"
    done = fixed(text, "add-decorator", "async def f():", decorator="tensorflow.function")
    assert done == "import tensorflow as tf\n@first\n@tf.function\nasync def f(): pass\n"


def test_parts() -> None:
    """A fix of several parts is done as a whole, or not at all."""
    text = "for x in y:\n    r = f(x)\n    s = g(x)\n"
    good = plan(text, "rename-call", "g(x)", name="h")
    both = plan(text, "add-keyword", "f(x)", parts=(good,), keyword="k", value="1")
    assert apply(text, Fixer(text, (2, 21)).plan(both).edits) == "for x in y:\n    r = f(x, k=1)\n    s = h(x)\n"
    bad = plan(text, "remove-keyword", "g(x)", keyword="k")
    half = plan(text, "add-keyword", "f(x)", parts=(bad,), keyword="k", value="1")
    assert Fixer(text, (2, 21)).plan(half).refused == "k is not given"
