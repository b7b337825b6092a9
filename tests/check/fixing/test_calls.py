"""Actions on calls and their arguments keep everything else letter for letter."""

from __future__ import annotations

import pytest
from tests.check.fixing.planning import fixed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(x)", "f(x, k=1)"),
        ("f()", "f(k=1)"),
        ("f( )", "f( k=1)"),
        ("f(x, )", "f(x, k=1, )"),
        ("f(x,)", "f(x, k=1,)"),
        ("f(*a, j=0)", "f(*a, j=0, k=1)"),
        ("f(y for y in z)", "f((y for y in z), k=1)"),
        ("f((y for y in z))", "f((y for y in z), k=1)"),
        ("f(x  # why\n  )", "f(x, k=1  # why\n  )"),
        ("f(\n    x,  # why\n    y,  # and\n)", "f(\n    x,  # why\n    y,  # and\n    k=1,\n)"),
        ("f(\n    x,\n    y\n)", "f(\n    x,\n    y,\n    k=1\n)"),
        ("f(x,\n  y)", "f(x,\n  y,\n  k=1)"),
        ("f(\n    x, y\n)", "f(\n    x, y, k=1\n)"),
        ("f(\n    # nothing yet\n)", "f(\n    # nothing yet\nk=1)"),
        ("f(lambda x: (x,\n  1))", "f(lambda x: (x,\n  1), k=1)"),
    ],
)
def test_add_keyword(before: str, after: str) -> None:
    """A keyword is added at the end, on a line of its own where the other arguments have one."""
    assert fixed(f"r = {before}  # end\n", "add-keyword", before, keyword="k", value="1") == f"r = {after}  # end\n"


def test_add_keyword_given() -> None:
    """A keyword that is already given, or may be, is not given twice."""
    assert fixed("f(k=2)\n", "add-keyword", "f(k=2)", keyword="k", value="1") == "refused: k is already given"
    done = fixed("f(**o)\n", "add-keyword", "f(**o)", keyword="k", value="1")
    assert done == "refused: arguments are hidden behind **"


@pytest.mark.parametrize(
    ("before", "after"), [("@f", "@f(k=True)"), ("@a.f", "@a.f(k=True)"), ("@f(1)", "@f(1, k=True)")]
)
def test_add_keyword_to_decorator(before: str, after: str) -> None:
    """A decorator without a call becomes one."""
    text = f"{before}  # note\ndef g(): pass\n"
    done = fixed(text, "add-keyword", before[1:], keyword="k", value="True")
    assert done == f"{after}  # note\ndef g(): pass\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(x, k=0, l=2)", "f(x, k=1, l=2)"),
        ("f(x, 0)", "f(x, 1)"),
        ("f(x)", "f(x, k=1)"),
        ("f(x, k=(  # why\n 0))", "refused: a comment would be lost"),
        ("f(x, **o)", "refused: arguments are hidden behind **"),
    ],
)
def test_replace_keyword(before: str, after: str) -> None:
    """The value of an argument is replaced, given by keyword or by position, or added."""
    done = fixed(f"{before}\n", "replace-keyword", before, keyword="k", value="1", index="1")
    assert done.rstrip("\n") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(x, k=0)", "f(x)"),
        ("f(k=0)", "f()"),
        ("f(k=0, l=1)", "f(l=1)"),
        ("f(x, k=0, l=1)", "f(x, l=1)"),
        ("f(x, 0)", "f(x)"),
        ("f(x, 0, 1)", "refused: k is given by position, before others"),
        ("f(\n    x,\n    k=0,\n)", "f(\n    x,\n)"),
        ("f(\n    x,\n    k=0,\n    l=1,\n)", "f(\n    x,\n    l=1,\n)"),
        ("f(\n    x,\n    k=0,  # why\n    l=1,\n)", "f(\n    x,\n    # why\n    l=1,\n)"),
        ("f(\n    x,  # this\n    k=0\n)", "f(\n    x  # this\n)"),
        ("f(x)", "refused: k is not given"),
    ],
)
def test_remove_keyword(before: str, after: str) -> None:
    """An argument goes, the comments around it stay."""
    done = fixed(f"{before}\n", "remove-keyword", before, keyword="k", index="1")
    assert done.rstrip("\n") == after


def test_rename_call() -> None:
    """What is called is spelled as the file does."""
    text = "import tensorflow as tf\ny = tf.map_fn( f, x)  # all\n"
    done = fixed(text, "rename-call", "tf.map_fn( f, x)", name="tensorflow.vectorized_map")
    assert done == "import tensorflow as tf\ny = tf.vectorized_map( f, x)  # all\n"


def test_rename_method() -> None:
    """A method's name changes, its object does not."""
    done = fixed("m.fit_generator(\n  g)\n", "rename-call", "m.fit_generator(\n  g)", method="fit")
    assert done == "m.fit(\n  g)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [("step", "tf.constant(step)"), ("step + 1", "tf.constant(step + 1)"), ("(a, b)", "tf.constant((a, b))")],
)
def test_wrap_call(before: str, after: str) -> None:
    """An expression becomes the argument of a call."""
    text = f"import tensorflow as tf\nf(x, {before})\n"
    assert fixed(text, "wrap-call", before, wrapper="tensorflow.constant") == text.replace(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [("f(x)", "x"), ("f(x + 1, 2)", "(x + 1)"), ("f(a\n.b)", "(a\n.b)"), ("f([a,\n b])", "[a,\n b]")],
)
def test_unwrap_call(before: str, after: str) -> None:
    """A call gives way to its first argument, in parentheses where it needs them."""
    assert fixed(f"y = 2 * {before}\n", "unwrap-call", before) == f"y = 2 * {after}\n"


@pytest.mark.parametrize(
    ("value", "after"),
    [
        ("$2.sum()", "(a + b).sum()"),
        ("f($2)", "f(a + b)"),
        ("$2 * 2", "(a + b) * 2"),
        ("$2", "a + b"),
        ("tensorflow.function(k=$2)", "tf.function(k=a + b)"),
    ],
)
def test_replace_expression(value: str, after: str) -> None:
    """Texts of nodes take their places in a template, in parentheses where they would mean something else."""
    text = "import tensorflow as tf\ny = g(a + b)\n"
    done = fixed(text, "replace-expression", "g(a + b)", "a + b", value=value)
    assert done == f"import tensorflow as tf\ny = {after}\n"


def test_non_ascii_columns() -> None:
    """Columns are characters: letters outside of ASCII before the call move nothing."""
    text = 'é = "größe"; r = f("ü", x)\n'
    assert fixed(text, "add-keyword", 'f("ü", x)', keyword="k", value="1") == 'é = "größe"; r = f("ü", x, k=1)\n'
