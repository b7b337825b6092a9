"""No source may break a check: mutated programs, Python's own test suite, and files that are none."""

from __future__ import annotations

import contextlib
import random
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.check.checking import examples

from stepscope.check.context import Engine
from stepscope.check.registry import ALL
from stepscope.check.run import run as run_module
from stepscope.check.run.run import FileResult, check
from stepscope.check.source.modules import Project
from stepscope.check.source.source import SkippedError, read
from stepscope.check.source.versions import Target

ROOT = Path(__file__).resolve().parents[2]
SEEDS = [text for rule in ALL for text in examples(rule)]
SEEDS += [path.read_text() for path in sorted((ROOT / "bench/cases").glob("*/slow.py"))]
SUITE = Path(sysconfig.get_paths()["stdlib"]) / "test"
ODD = (
    "test_grammar test_syntax test_patma test_fstring test_generators test_scope test_named_expressions test_unpack_ex "
)
ODD += "test_coroutines test_decorators test_exceptions test_global test_nonlocal test_positional_only_arg test_with"


def run(files: dict[str, bytes]) -> list[FileResult]:
    """All rules on a project of bytes."""
    readers = {path: (lambda data=data: data) for path, data in files.items()}
    return check(Engine(Project(readers, ["."]), Target()), files, ALL)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A program of ours with lines dropped, doubled, exchanged, moved in or out, or taken from another one."""
    lines = draw(st.sampled_from(SEEDS)).splitlines()
    others = draw(st.sampled_from(SEEDS)).splitlines()
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(lines) - 1))
        kind = draw(st.sampled_from(["drop", "double", "exchange", "in", "out", "other", "words"]))
        if kind == "drop" and len(lines) > 1:
            del lines[at]
        elif kind == "double":
            lines.insert(at, lines[at])
        elif kind == "exchange":
            to = draw(st.integers(0, len(lines) - 1))
            lines[at], lines[to] = lines[to], lines[at]
        elif kind == "in":
            lines[at] = "    " + lines[at]
        elif kind == "out":
            lines[at] = lines[at].removeprefix("    ")
        elif kind == "other":
            lines.insert(at, draw(st.sampled_from(others)))
        elif kind == "words":
            words = lines[at].split(" ")
            random.Random(draw(st.integers(0, 99))).shuffle(words)
            lines[at] = " ".join(words)
    return "\n".join(lines)


@given(mutated())
def test_mutated_programs(text: str) -> None:
    """A mutated program is checked or skipped with a reason; no rule and no analysis fails on it."""
    (result,) = run({"main.py": text.encode()})
    assert result.failures == ()
    for hit in result.hits:
        lines = text.split("\n")
        assert 1 <= hit.span.line <= hit.span.end_line <= len(lines)
        assert 1 <= hit.span.column <= len(lines[hit.span.line - 1]) + 1


@given(st.binary(max_size=300), st.sampled_from(["a.py", "a.ipynb"]))
def test_any_bytes(data: bytes, name: str) -> None:
    """Bytes of any kind are a source or a reason."""
    with contextlib.suppress(SkippedError):
        assert read(name, data).lines


@given(st.permutations(["main.py", "called.py", "nets.py", "data.py"]))
def test_the_order_of_files_does_not_matter(order: list[str]) -> None:
    """The same findings whichever file is checked first: nothing is left over from one to the next."""
    texts = {
        "main.py": "from nets import Net, twice\nfrom called import use\nnet = Net()\nfor x in data():\n    use(net, x)\n    twice(x)\n",
        "called.py": "from data import pipeline\nds = pipeline()\ndef use(model, x):\n    return model.predict([x])\n",
        "nets.py": "import tensorflow as tf\nfrom called import use\nclass Net(tf.keras.Model):\n    def go(self, x):\n        return use(self, x)\n@tf.function\ndef twice(x):\n    return x\n",
        "data.py": "import tensorflow as tf\nfrom nets import Net\ndef pipeline():\n    ds = tf.data.TextLineDataset('x')\n    return ds.map(lambda x: x + tf.random.uniform([]))\n",
    }
    found = {h.code + h.span.path for r in run({name: texts[name].encode() for name in order}) for h in r.hits}
    assert found == {"KER001called.py", "TFD001data.py"}


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 80 + ")" * 80,
        "x = " + "+".join(["1"] * 3000),
        "x = a" + ".b" * 300 + "()",
        "x = a" + ".b()" * 300,
        "def f():\n" + "".join("    " * i + "if x:\n" for i in range(1, 60)) + "    " * 60 + "pass\n",
        "x" + " = x" * 500,
        "\ufeffimport tensorflow\n",
        "import os\x0c\nx = 1\r\ny = 2\rz = 3",
        "",
        "\n" * 5000,
        "é = 'ü'; tf = é.map(lambda ä: ä)  # ö\n",
        "class A(A): pass\nclass B(C): pass\nclass C(B):\n    def f(self): return self.f()\nC().f().g()",
        "def f(x=f): return f(f(x))\nf(f)",
        "import a\na = a.a\nb = a\na = b\na.b.c()",
        "x: 'x'\ndef f(a: 'f', b: f) -> 'a': ...\n",
        "match x:\n    case {'a': y, **z}: y(z)\n    case [1, *w] | (w): w()\n    case A(b=c) if c: c()\n",
        "for x in x:\n    x = [x for x in x for x in x if (y := x)]\nelse:\n    del x\nx()",
        "try:\n    pass\nexcept* E as e:\n    e()\nfinally:\n    return_ = 1\n",
        "async def f():\n    async for x in y:\n        async with z as w, v: await w(x)\n    return [x async for x in y]\n",
    ],
)
def test_odd_programs(text: str) -> None:
    """Deep, circular, empty or odd programs: checked or skipped, never a failure."""
    (result,) = run({"main.py": text.encode()})
    assert result.failures == ()


@pytest.mark.skipif(not SUITE.is_dir(), reason="this Python has no test suite")
def test_oddities_of_pythons_test_suite() -> None:
    """Files that try every corner of the grammar."""
    files = {str(p): p.read_bytes() for word in ODD.split() if (p := SUITE / f"{word}.py").is_file()}
    assert [failure for result in run(files) for failure in result.failures] == []


@pytest.mark.slow
@pytest.mark.skipif(not SUITE.is_dir(), reason="this Python has no test suite")
def test_pythons_test_suite() -> None:
    """Every file of it; those that are no Python are skipped with a reason."""
    files = {str(path): path.read_bytes() for path in sorted(SUITE.rglob("*.py"))}
    if len(files) <= 100:
        pytest.skip("this Python has a part of its test suite only, as Debian's")
    results = run(files)
    assert [failure for result in results for failure in result.failures] == []


def test_a_file_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stopped with a notice, and the files after it are checked as if nothing had been."""
    files = {
        "one.py": b"import tensorflow as tf\nds = tf.data.Dataset.range(9).map(lambda x: x)\n" * 200,
        "two.py": b"import tensorflow as tf\ntf.config.run_functions_eagerly(True)\n",
    }
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "BOX_S", -1.0)
        first, _ = run(files)
    assert ["stopped after" in failure for failure in first.failures] == [True]
    again = run(files)
    assert [result.failures for result in again] == [(), ()]
    assert [hit.code for hit in again[1].hits] == ["TFF006"]
