"""Rules about loops report, and move, what has the same value in each iteration, not what is the same object."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.check.analyses.unchanging_cases import CHANGES, STAYS, UNMOVED
from tests.check.checking import hits

from stepscope.check.use_cases import check as use_case
from stepscope.check.use_cases import check_fix

RUN = """
import contextlib, io, json, sys
for text in json.load(sys.stdin):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(text, "program", "exec"), {"__name__": "program"})
    print(json.dumps(said.getvalue().splitlines()[-1]))
"""
"""Programs in one process, and the last line that each prints."""
H = "import numpy as np\nimport tensorflow as tf\nfrom tensorflow import keras\n"


@pytest.mark.parametrize("text", CHANGES.values(), ids=CHANGES)
def test_what_changes_is_not_told_to_stay(text: str) -> None:
    """OPS004 is silent where an op reads what the loop, or what it calls, may change."""
    assert [hit.message for hit in hits(text) if hit.code == "OPS004"] == []


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_what_stays_is_told(text: str) -> None:
    """OPS004 reports ops of numbers, texts and tensors beside whatever else happens, of arrays where nothing does."""
    assert "OPS004" in [hit.code for hit in hits(text)]


@pytest.mark.parametrize("text", UNMOVED.values(), ids=UNMOVED)
def test_what_cannot_be_moved_has_no_fix(text: str) -> None:
    """The op is reported, and its statement stays where its name is read as it was before, or needs the loop's names."""
    """The op is reported, and its statement stays where its name is read as it was before, or needs the loop's names."""
    found = [hit for hit in hits(text) if hit.code == "OPS004"]
    assert found
    assert [hit.fix for hit in found] == [None] * len(found)


@pytest.mark.tf
def test_moving_changes_no_result(tmp_path: Path) -> None:
    """Every program whose op is moved prints the same before and after, and all the others run at all."""
    moved = [fixed(tmp_path, text) for text in STAYS.values()]
    assert all(text is not None for text in moved)
    programs = [*STAYS.values(), *moved, *CHANGES.values(), *UNMOVED.values()]
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(programs), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(said) == len(programs)
    assert dict(zip(STAYS, said, strict=False)) == dict(zip(STAYS, said[len(STAYS) :], strict=False))


def fixed(folder: Path, text: str) -> str | None:
    """A program after the fixes of OPS004."""
    path = folder / "program.py"
    path.write_text(text)
    options = use_case.Options(paths=(path,), select=("OPS004",), target_version="2.21", cache=False)
    changes = check_fix.fix(options, unsafe=True).changes
    return changes[0].new.decode() if changes else None


OTHERS: dict[str, tuple[str, str]] = {
    "KER003 global path": (
        H + "path = None\ndef load():\n    return keras.models.load_model(path)\n"
        "for p in open('l'):\n    path = p\n    load().predict(np.ones([1,2]))\n",
        "silent",
    ),
    "KER003 self.path": (
        H + "class A:\n    def __init__(self):\n        self.path = 'a'\n    def load(self):\n"
        "        return keras.models.load_model(self.path)\na = A()\nfor p in open('l'):\n"
        "    a.path = p\n    a.load().predict(np.ones([1,2]))\n",
        "silent",
    ),
    "KER003 self.path method": (
        H + "class A:\n    def __init__(self):\n        self.path = 'a'\n    def set(self, p):\n"
        "        self.path = p\n    def load(self):\n"
        "        return keras.models.load_model(self.path)\na = A()\nfor p in open('l'):\n"
        "    a.set(p)\n    a.load().predict(np.ones([1,2]))\n",
        "silent",
    ),
    "KER003 saved": (
        H + "m = keras.Sequential([keras.layers.Dense(1)])\nfor p in range(100):\n    change(m)\n"
        "    m.save('a.keras')\n    n = keras.models.load_model('a.keras')\n"
        "    n.predict(np.ones([1,2]))\n",
        "silent",
    ),
    "KER003 global function": (
        H + "path = 'a'\ndef step(p):\n    global path\n    path = p\nfor p in open('l'):\n"
        "    step(p)\n    m = keras.models.load_model(path)\n    m.predict(np.ones([1,2]))\n",
        "silent",
    ),
    "KER003 list path": (
        H + "paths = ['a']\nfor p in open('l'):\n    paths[0] = p\n"
        "    m = keras.models.load_model(paths[0])\n    m.predict(np.ones([1,2]))\n",
        "silent",
    ),
    "KER003 cfg": (
        H + "cfg = {'p': 1}\ndef f(c, p):\n    c['p'] = p\nfor p in open('l'):\n    f(cfg, p)\n"
        "    m = keras.models.load_model(cfg['p'])\n    m.predict(np.ones([1,2]))\n",
        "silent",
    ),
    "KER003 read before": (
        H + "m = keras.models.load_model('b')\nfor p in range(100):\n"
        "    m.predict(np.ones([1,2]))\n    m = keras.models.load_model('a')\n",
        "no fix",
    ),
    "TFF009 lr": (
        H + "w = tf.Variable(tf.zeros([8]))\nfor i in range(100):\n"
        "    opt = tf.keras.optimizers.SGD(0.1 * i)\n    opt.apply_gradients([(w, w)])\n",
        "silent",
    ),
    "TFF009 lr name": (
        H + "w = tf.Variable(tf.zeros([8]))\nlr = 0.1\nfor i in range(100):\n    lr = lr * 0.9\n"
        "    opt = tf.keras.optimizers.SGD(lr)\n    opt.apply_gradients([(w, w)])\n",
        "silent",
    ),
    "TFF009 in loop const": (
        H + "w = tf.Variable(tf.zeros([8]))\nfor i in range(100):\n    lr = 0.9\n"
        "    opt = tf.keras.optimizers.SGD(lr)\n    opt.apply_gradients([(w, w)])\n",
        "no fix",
    ),
    "TFF009 read before": (
        H + "w = tf.Variable(tf.zeros([8]))\nopt = tf.keras.optimizers.Adam()\n"
        "for i in range(100):\n    opt.apply_gradients([(w, w)])\n"
        "    opt = tf.keras.optimizers.SGD(1.0)\n",
        "no fix",
    ),
    "TFF002 attr": (
        H + "class B:\n    pass\nbox = B()\ntotal = 0.\nfor i in range(100):\n"
        "    box.scale = 1.0 * i\n    @tf.function\n    def f(x):\n"
        "        return x * box.scale\n    total += f(tf.ones([]))\n",
        "no fix",
    ),
    "TFF002 method": (
        H + "class B:\n    def __init__(self):\n        self.scale = 1.0\n    def grow(self):\n"
        "        self.scale += 1.0\nbox = B()\ntotal = 0.\nfor i in range(100):\n"
        "    box.grow()\n    @tf.function\n    def f(x):\n        return x * box.scale\n"
        "    total += f(tf.ones([]))\n",
        "no fix",
    ),
    "TFF002 global": (
        H + "scale = 1.0\ndef grow():\n    global scale\n    scale += 1.0\ntotal = 0.\n"
        "for i in range(100):\n    grow()\n    @tf.function\n    def f(x):\n"
        "        return x * scale\n    total += f(tf.ones([]))\n",
        "no fix",
    ),
    "TFF002 cfg": (
        H + "cfg = {'s': 1.0}\ntotal = 0.\nfor i in range(100):\n    cfg['s'] += 1.0\n"
        "    @tf.function\n    def f(x):\n        return x * cfg['s']\n"
        "    total += f(tf.ones([]))\n",
        "no fix",
    ),
    "TFF002 array": (
        H + "a = np.zeros(3,'f')\ntotal = 0.\nfor i in range(100):\n    a[:] = i\n"
        "    @tf.function\n    def f(x):\n        return x * a\n    total += f(tf.ones([]))\n",
        "no fix",
    ),
    "TFF002 out": (
        H + "cfg = {'s': 1.0}\ndef run(x):\n    @tf.function\n    def f(y):\n"
        "        return y * cfg['s']\n    return f(x)\nfor i in range(100):\n"
        "    cfg['s'] += 1.0\n    run(tf.ones([]))\n",
        "no fix",
    ),
    "TFF002 var of a variable": (
        H + "v = tf.Variable(1.0)\ntotal = 0.\nfor i in range(100):\n    v.assign_add(1.0)\n"
        "    @tf.function\n    def f(x):\n        return x * v\n    total += f(tf.ones([]))\n",
        "fix",
    ),
    "TFF011 lambda": (
        H + "scale = 1.0\ndef grow():\n    global scale\n    scale += 1.0\n@tf.function\n"
        "def f(g, x):\n    return g(x)\nfor i in range(100):\n    grow()\n"
        "    f(lambda x: x * scale, tf.ones([]))\n",
        "no fix",
    ),
    "TFF011 lambda cfg": (
        H + "cfg = {'s': 1.0}\n@tf.function\ndef f(g, x):\n    return g(x)\nfor i in range(100):\n"
        "    cfg['s'] += 1.0\n    f(lambda x: x * cfg['s'], tf.ones([]))\n",
        "no fix",
    ),
    "TFF011 object": (
        H + "v = tf.Variable(1.0)\nclass C:\n    def __init__(self, s):\n"
        "        self.s = float(s)\n@tf.function\ndef f(g, x):\n    return g.s * x\n"
        "for i in range(100):\n    v.assign_add(1.0)\n    f(C(v), tf.ones([]))\n",
        "no fix",
    ),
    "KER006 aug": (
        H + "m = keras.Sequential([keras.layers.Dense(1)])\nx = np.ones([100,2])\n"
        "rng = np.random.default_rng(1)\nfor i in range(100):\n    rng.shuffle(x)\n"
        "    m.fit(x, x, epochs=1)\n",
        "silent",
    ),
    "KER006 fn": (
        H + "m = keras.Sequential([keras.layers.Dense(1)])\nx = np.ones([100,2])\ndef aug(a):\n"
        "    a += 1\nfor i in range(100):\n    aug(x)\n    m.fit(x, x, epochs=1)\n",
        "silent",
    ),
    "KER005 lr": (
        H + "m = keras.Sequential([keras.layers.Dense(1)])\nclass S:\n    def __init__(self):\n"
        "        self.lr = 0.1\n    def down(self):\n        self.lr *= 0.5\ns = S()\n"
        "for i in range(100):\n    s.down()\n"
        "    m.compile(keras.optimizers.SGD(s.lr), 'mse')\n"
        "    m.fit(np.ones([4,2]), np.ones([4,1]))\n",
        "silent",
    ),
    "KER005 global": (
        H + "m = keras.Sequential([keras.layers.Dense(1)])\nlr = 0.1\ndef down():\n    global lr\n"
        "    lr *= 0.5\nfor i in range(100):\n    down()\n"
        "    m.compile(keras.optimizers.SGD(lr), 'mse')\n"
        "    m.fit(np.ones([4,2]), np.ones([4,1]))\n",
        "silent",
    ),
    "TFD016 rebuilt": (
        H + "data = [1.0]\nclass D:\n    def __init__(self):\n"
        "        self.ds = tf.data.Dataset.range(3)\n    def next(self):\n"
        "        self.ds = self.ds.skip(1)\nd = D()\nfor i in range(100):\n    d.next()\n"
        "    x = next(iter(d.ds))\n",
        "silent",
    ),
}
"""Programs by the code of a rule and what is in them that changes; whether it reports, and with a fix."""


@pytest.mark.parametrize(("case", "text", "wanted"), [(case, *rest) for case, rest in OTHERS.items()], ids=OTHERS)
def test_other_rules_about_loops(case: str, text: str, wanted: str) -> None:
    """They are silent, or have no fix, where what is made in the loop is made of something that changes."""
    found = [hit for hit in hits(text) if hit.code == case.split(maxsplit=1)[0]]
    said = "silent" if not found else "no fix" if found[0].fix is None else "fix"
    assert said == wanted
