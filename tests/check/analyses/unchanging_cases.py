"""Loops with an op that gives the same in every iteration, and loops with one that only looks like it.

Each is a whole program that prints its result; ``{op}`` stands for the statement that is asked about. A program is
silent where something that the op reads can be another value in another iteration.
"""

from __future__ import annotations

HEAD = "import numpy as np\nimport tensorflow as tf\ntotal = tf.zeros([])\n"
TAIL = "print(round(float(tf.reduce_sum(total)), 4))\n"


def loop(before: str, op: str, after: str = "", *, head: str = "for i in range(20):") -> str:
    """A loop that adds up what an op gives, with lines before and after it in the body."""
    lines = [*before.splitlines(), f"x = {op}", *after.splitlines(), "total += tf.reduce_sum(x)"]
    return head + "\n" + "".join(f"    {line}\n" for line in lines)


def program(setup: str, body: str) -> str:
    """A whole program."""
    return f"{HEAD}{setup}\n{body}{TAIL}"


MODEL = """tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense(2, kernel_regularizer="l2")])
opt = tf.keras.optimizers.SGD(0.1)
data = tf.ones([4, 2])
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(model(data)))
    opt.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
"""

CHANGES: dict[str, str] = {
    "variable assigned": program("v = tf.Variable(0.0)", loop("v.assign_add(1.0)", "tf.square(v)")),
    "variable assigned after": program("v = tf.Variable(0.0)", loop("", "tf.square(v)", "v.assign_add(1.0)")),
    "variable assigned by a function": program(
        "v = tf.Variable(0.0)\ndef add():\n    v.assign_add(1.0)", loop("add()", "tf.square(v)")
    ),
    "variable assigned by a tf.function": program(
        "v = tf.Variable(0.0)\n@tf.function\ndef add():\n    v.assign_add(1.0)", loop("add()", "tf.square(v)")
    ),
    "variable by another name": program("v = tf.Variable(0.0)\nw = v", loop("w.assign_add(1.0)", "tf.square(v)")),
    "variable in a list": program("vs = [tf.Variable(0.0)]", loop("vs[0].assign_add(1.0)", "tf.square(vs[0])")),
    "variable in a dictionary": program(
        "vs = {'a': tf.Variable(0.0)}", loop("vs['a'].assign_add(1.0)", "tf.square(vs['a'])")
    ),
    "variable as an attribute": program(
        "class Box:\n    def __init__(self):\n        self.v = tf.Variable(0.0)\nbox = Box()",
        loop("box.v.assign_add(1.0)", "tf.square(box.v)"),
    ),
    "variable of one branch": program(
        "import sys\nv = tf.Variable(0.0) if sys.path else tf.constant(0.0)", loop("v.assign_add(1.0)", "tf.square(v)")
    ),
    "variable given to a function": program(
        "v = tf.Variable(0.0)\ndef run(w):\n    total = tf.zeros([])\n"
        + "".join(f"    {line}\n" for line in loop("v.assign_add(1.0)", "tf.square(w)").splitlines())
        + "    return total",
        "total = run(v)\n",
    ),
    "variable in arithmetic": program("v = tf.Variable(0.0)", loop("v.assign_add(1.0)", "tf.square(v + 1.0)")),
    "variable's value below": program("v = tf.Variable(0.0)", loop("v.assign_add(1.0)", "tf.square(v.read_value())")),
    "variable's value by name": program(
        "v = tf.Variable(0.0)", loop("v.assign_add(1.0)\ny = tf.identity(v) * 2.0", "tf.square(y)")
    ),
    "kernel of a layer": program(MODEL, loop("step()", "tf.norm(model.layers[0].kernel)")),
    "kernel of a layer, compiled": program(
        MODEL.replace("def step", "@tf.function\ndef step"), loop("step()", "tf.norm(model.layers[0].kernel)")
    ),
    "kernel held by a name": program(MODEL + "kernel = model.layers[0].kernel", loop("step()", "tf.norm(kernel)")),
    "all weights": program(MODEL, loop("step()", "tf.linalg.global_norm(model.trainable_variables)")),
    "weights after fit": program(
        MODEL + 'model.compile("sgd", "mse")',
        loop("model.fit(data, data, verbose=0)", "tf.norm(model.layers[0].kernel)", head="for i in range(12):"),
    ),
    "weights after train_on_batch": program(
        MODEL + 'model.compile("sgd", "mse")\nw = model.weights[0]',
        loop("model.train_on_batch(data, data)", "tf.norm(w)"),
    ),
    "weights after set_weights": program(
        MODEL,
        loop(
            "model.set_weights([w + 1.0 for w in model.get_weights()])",
            "tf.square(model.layers[0].bias)",
        ),
    ),
    "iterations of an optimizer": program(MODEL, loop("step()", "tf.square(tf.cast(opt.iterations, tf.float32))")),
    "learning rate": program(
        MODEL, loop("opt.learning_rate = 0.1 * i", "tf.square(opt.learning_rate)", head="for i in range(20):")
    ),
    "losses of a model": program(
        MODEL + "model(data)",
        loop("model.layers[0].kernel.assign_add(tf.ones([2, 2]))", "tf.add_n(model.losses)"),
    ),
    "result of a metric": program(
        "metric = tf.keras.metrics.Sum()", loop("metric.update_state(1.0)", "tf.square(metric.total)")
    ),
    "array changed in place": program("a = np.zeros(3, 'f')", loop("a[0] += 1.0", "tf.reduce_sum(a)")),
    "array changed by another name": program(
        "a = np.zeros(3, 'f')\nb = a", loop("b[0] += 1.0", "tf.reduce_sum(tf.square(a))")
    ),
    "array changed by a view": program(
        "a = np.zeros([3, 3], 'f')\nrow = a[1]", loop("row += 1.0", "tf.reduce_sum(tf.square(a))")
    ),
    "array changed by a function": program(
        "a = np.zeros(3, 'f')\ndef fill(b, i):\n    b[:] = i", loop("fill(a, i)", "tf.reduce_sum(tf.square(a))")
    ),
    "array shuffled": program(
        "rng = np.random.default_rng(1)\na = np.arange(9.0, dtype='f')", loop("rng.shuffle(a)", "tf.square(a[0])")
    ),
    "array written by out=": program(
        "a = np.zeros(3, 'f')", loop("np.add(a, 1.0, out=a)", "tf.reduce_sum(tf.square(a))")
    ),
    "list that grows by another name": program(
        "parts = [1.0]\nsame = parts", loop("same.append(1.0 * i)", "tf.reduce_sum(tf.stack(parts))")
    ),
    "list that a method grows": program(
        "class Box:\n    def __init__(self):\n        self.parts = [1.0]\n"
        "    def add(self, x):\n        self.parts.append(x)\nbox = Box()",
        loop("box.add(1.0 * i)", "tf.reduce_sum(tf.stack(box.parts))"),
    ),
    "dictionary updated by a function": program(
        "d = {'a': 1.0}\ndef grow():\n    d['a'] += 1.0", loop("grow()", "tf.square(d['a'])")
    ),
    "global changed in a function": program(
        "scale = 1.0\ndef grow():\n    global scale\n    scale += 1.0",
        loop("grow()", "tf.square(scale)"),
    ),
    "nonlocal changed in a closure": program(
        "def run():\n    scale = 1.0\n    total = tf.zeros([])\n    def grow():\n"
        "        nonlocal scale\n        scale += 1.0\n"
        + "".join(f"    {line}\n" for line in loop("grow()", "tf.square(scale)").splitlines())
        + "    return total",
        "total = run()\n",
    ),
    "attribute set by a method": program(
        "class Box:\n    def __init__(self):\n        self.scale = 1.0\n"
        "    def grow(self):\n        self.scale += 1.0\nbox = Box()",
        loop("box.grow()", "tf.square(box.scale)"),
    ),
    "attribute set from outside": program(
        "class Box:\n    def __init__(self):\n        self.scale = 1.0\nbox = Box()\n"
        "def grow(one):\n    one.scale += 1.0",
        loop("grow(box)", "tf.square(box.scale)"),
    ),
    "attribute set by setattr": program(
        "class Box:\n    def __init__(self):\n        self.scale = 1.0\nbox = Box()",
        loop("setattr(box, 'scale', 1.0 * i)", "tf.square(box.scale)"),
    ),
    "property": program(
        "count = []\nclass Box:\n    @property\n    def scale(self):\n        count.append(1)\n"
        "        return 1.0 * len(count)\nbox = Box()",
        loop("", "tf.square(box.scale)"),
    ),
    "random": program("tf.random.set_seed(1)", loop("", "tf.square(tf.random.normal([3]))")),
    "random pooling": program(
        "images = tf.reshape(tf.range(64.0), [1, 8, 8, 1])",
        loop("", "tf.nn.fractional_max_pool(images, [1.0, 1.5, 1.5, 1.0], True, seed=1)[0]"),
    ),
    "array of random numbers": program(
        "rng = np.random.default_rng(1)", loop("a = rng.normal(size=3).astype('f')", "tf.square(a)")
    ),
    "function that reads a variable": program(
        "v = tf.Variable(0.0)\ndef f(x):\n    return x + v",
        loop("v.assign_add(1.0)", "tf.vectorized_map(f, tf.ones([3]))"),
    ),
    "file": program(
        "import os, tempfile\npath = os.path.join(tempfile.mkdtemp(), 'a')",
        loop("tf.io.write_file(path, str(i))", "tf.strings.to_number(tf.io.read_file(path))"),
    ),
    "element of an iterator": program(
        "it = iter(tf.data.Dataset.range(30))", loop("", "tf.square(tf.cast(next(it), tf.float32))")
    ),
    "counter of a while loop": program(
        "class C:\n    n = 0\nc = C()",
        loop("c.n += 1", "tf.square(1.0 * c.n)", head="while c.n < 20:"),
    ),
    "generator that changes what is read": program(
        "a = np.zeros(3, 'f')\ndef rows():\n    for i in range(20):\n        a[0] = i\n        yield i",
        loop("", "tf.reduce_sum(tf.square(a))", head="for i in rows():"),
    ),
    "moving average": program(
        "v = tf.Variable(1.0)\nema = tf.train.ExponentialMovingAverage(0.5)\nema.apply([v])\nm = ema.average(v)",
        loop("v.assign_add(1.0)\nema.apply([v])", "tf.square(m)"),
    ),
    "table": program(
        "t = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)\nkey = tf.constant(1, tf.int64)",
        loop("t.insert(key, 1.0 * i)", "tf.square(t.lookup(key))"),
    ),
    "annotated": program(
        "v = tf.Variable(0.0)\ndef run(w: tf.Tensor):\n    total = tf.zeros([])\n"
        + "".join(f"    {line}\n" for line in loop("v.assign_add(1.0)", "tf.square(w)").splitlines())
        + "    return total",
        "total = run(v)\n",
    ),
    "returned": program(
        "def make():\n    return tf.Variable(0.0)\nv = make()", loop("v.assign_add(1.0)", "tf.square(v)")
    ),
    "class attr": program("class Box:\n    scale = 1.0\nbox = Box()", loop("Box.scale += 1.0", "tf.square(box.scale)")),
    "dict attr": program(
        "class Box:\n    def __init__(self):\n        self.scale = 1.0\nbox = Box()",
        loop("box.__dict__['scale'] = 1.0*i", "tf.square(box.scale)"),
    ),
    "vars attr": program(
        "class Box:\n    def __init__(self):\n        self.scale = 1.0\nbox = Box()",
        loop("vars(box).update(scale=1.0*i)", "tf.square(box.scale)"),
    ),
    "exec": program("n = 1.0", loop("exec('n += 1.0')", "tf.square(n)")),
    "globals": program("n = 1.0", loop("globals()['n'] = 1.0*i", "tf.square(n)")),
    "keras var": program("v = tf.keras.Variable(0.0)", loop("v.assign(1.0*i)", "tf.square(v)")),
    "add_weight": program(
        "layer = tf.keras.layers.Dense(1)\nlayer.build([None,1])\nw = layer.kernel",
        loop("layer.set_weights([np.ones([1,1])*i,np.ones([1])])", "tf.square(w)"),
    ),
    "zip alias": program(
        "vs = [tf.Variable(0.0)]\nfor v in vs:\n    pass", loop("vs[0].assign_add(1.0)", "tf.square(v)")
    ),
    "unpack": program("v, w = tf.Variable(0.0), tf.Variable(1.0)", loop("v.assign_add(1.0)", "tf.square(v)")),
    "unpack2": program(
        "def two():\n    return tf.Variable(0.0), 1.0\nv, w = two()", loop("v.assign_add(1.0)", "tf.square(v)")
    ),
    "for array rows": program("a = np.zeros([3,3],'f')\nr = a[0]", loop("a[0, 0] = i", "tf.square(r)")),
    "np.asarray alias": program("a = np.zeros(3,'f')\nb = np.asarray(a)", loop("b[0] = i", "tf.square(a)")),
    "aug alias": program("a = np.zeros(3,'f')\nb = a", loop("b += 1", "tf.square(a)")),
    "list of arrays": program("a = np.zeros(3,'f')\nrows = [a]", loop("rows[0][0] = i", "tf.square(a)")),
    "list loop": program("a = np.zeros(3,'f')\nrows = [a]", loop("for r in rows:\n    r[0] = i", "tf.square(a)")),
    "queue": program(
        "import collections\nd = collections.deque([1.0], maxlen=1)",
        loop("d.append(1.0*i)", "tf.reduce_sum(tf.stack(list(d)))"),
    ),
    "nested list": program("l = [[1.0]]\nm = l[0]", loop("m.append(1.0)", "tf.reduce_sum(l[0])")),
    "fresh alias": program("a = [1.0]\nb = []\nb = a if a else b", loop("b.append(1.0)", "tf.reduce_sum(tf.stack(a))")),
    "fresh in container": program(
        "a = [1.0]\nbox = [a]\nc = list(box)", loop("c[0].append(1.0)", "tf.reduce_sum(tf.stack(a))")
    ),
    "map callback": program(
        "a = [1.0]\ndef f(x):\n    a.append(1.0)\n    return x", loop("list(map(f, [1]))", "tf.reduce_sum(tf.stack(a))")
    ),
    "sorted key": program(
        "a = [1.0]\ndef f(x):\n    a.append(1.0)\n    return x",
        loop("sorted([1], key=f)", "tf.reduce_sum(tf.stack(a))"),
    ),
    "sorted lambda": program(
        "a = [1.0]", loop("sorted([1], key=lambda q: a.append(1.0) or 1)", "tf.reduce_sum(tf.stack(a))")
    ),
    "str method": program(
        "a = [1.0]\nclass S:\n    def __str__(self):\n        a.append(1.0)\n        return 's'\ns = S()",
        loop("str(s)", "tf.reduce_sum(tf.stack(a))"),
    ),
    "operator": program(
        "a = [1.0]\nclass S:\n    def __add__(self, o):\n        a.append(1.0)\n        return 's'\ns = S()",
        loop("s + 1", "tf.reduce_sum(tf.stack(a))"),
    ),
    "getattr prop": program(
        "a = [1.0]\nclass S:\n    @property\n    def p(self):\n        a.append(1.0)\n        return 1\ns = S()",
        loop("s.p", "tf.reduce_sum(tf.stack(a))"),
    ),
    "getitem": program(
        "a = [1.0]\nclass S:\n    def __getitem__(self, k):\n        a.append(1.0)\n        return 1\ns = S()",
        loop("s[0]", "tf.reduce_sum(tf.stack(a))"),
    ),
    "iter class": program(
        "a = np.zeros(3,'f')\nclass S:\n    def __iter__(self):\n        for i in range(20):\n"
        "            a[0] = i\n            yield i\ns = S()",
        loop("", "tf.square(a)", head="for i in s:"),
    ),
    "gen expr": program(
        "a = np.zeros(3,'f')\ndef f(i):\n    a[0] = i\n    return i\ng = (f(i) for i in range(20))",
        loop("", "tf.square(a)", head="for i in g:"),
    ),
    "map iter": program(
        "a = np.zeros(3,'f')\ndef f(i):\n    a[0] = i\n    return i",
        loop("", "tf.square(a)", head="for i in map(f, range(20)):"),
    ),
    "enumerate gen": program(
        "a = np.zeros(3,'f')\ndef g():\n    for i in range(20):\n        a[0] = i\n        yield i",
        loop("", "tf.square(a)", head="for _, i in enumerate(g()):"),
    ),
    "dataset gen": program(
        "a = np.zeros(3,'f')\ndef g():\n    for i in range(20):\n        a[0] = i\n"
        "        yield i\nds = tf.data.Dataset.from_generator(g, tf.int64)",
        loop("", "tf.square(a)", head="for i in ds:"),
    ),
    "partial": program(
        "import functools\nv = tf.Variable(0.0)\nadd = functools.partial(v.assign_add, 1.0)",
        loop("add()", "tf.square(v)"),
    ),
    "closure cell": program(
        "def make():\n    n = 0.0\n    def inc():\n        nonlocal n\n        n += 1.0\n"
        "    def get():\n        return n\n    return inc, get\ninc, get = make()",
        loop("inc()", "tf.square(get())"),
    ),
    "thread": program(
        "import threading\nv = [0.0]\ndef w():\n    v[0] += 1.0",
        loop("t = threading.Thread(target=w)\nt.start()\nt.join()", "tf.square(v[0])"),
    ),
    "tf.Module": program(
        "class M(tf.Module):\n    def __init__(self):\n        self.w = tf.Variable(0.0)\n"
        "    def __call__(self):\n        self.w.assign_add(1.0)\nm = M()",
        loop("m()", "tf.square(m.w)"),
    ),
    "opt vars": program(MODEL + "step()", loop("step()", "tf.square(tf.cast(opt.variables[0], tf.float32))")),
    "cfg dict": program("cfg = {'n': 1.0}\ndef f(c):\n    c['n'] += 1.0", loop("f(cfg)", "tf.square(cfg['n'])")),
    "namespace": program(
        "import argparse\nargs = argparse.ArgumentParser().parse_args([])\nargs.n = 1.0\ndef f(c):\n    c.n += 1.0",
        loop("f(args)", "tf.square(args.n)"),
    ),
    "scalar tensor rebind": program(
        "t = tf.ones([])\ndef f():\n    global t\n    t = t + 1.0", loop("f()", "tf.square(t)")
    ),
    "time": program("import time\n", loop("t = tf.cast(tf.timestamp(), tf.float32)", "tf.square(t - t + i)")),
}
"""What the op reads is another value in another iteration."""

STAYS: dict[str, str] = {
    "constants": program("", loop("", "tf.exp(-tf.square(tf.linspace(-3.0, 3.0, 8)))")),
    "number of the module": program("n = 8", loop("", "tf.linspace(-3.0, 3.0, n)")),
    "tensor": program("t = tf.ones([3])", loop("", "tf.square(t)")),
    "tensor beside a train step": program(MODEL + "t = tf.ones([3])", loop("step()", "tf.square(t)")),
    "tensor that a function made": program("t = tf.reduce_sum(tf.ones([3]))\nu = t", loop("print(i)", "tf.square(u)")),
    "tensor beside variables": program(
        "v = tf.Variable(0.0)\nt = tf.ones([3])", loop("v.assign_add(1.0)", "tf.square(t)", "total += v")
    ),
    "shape of a tensor": program("t = tf.ones([3])", loop("", "tf.linspace(0.0, 1.0, t.shape[0])")),
    "constant of a module": program("", loop("", "tf.sin(np.pi / 4)")),
    "made in the loop": program("n = 8", loop("y = tf.cast(tf.range(n), tf.float32)", "tf.sin(y)", "total += 1.0 * i")),
    "attribute of an object": program(
        "class Box:\n    def __init__(self):\n        self.n = 8\nbox = Box()",
        loop("print(i)", "tf.linspace(0.0, 1.0, box.n)"),
    ),
    "array that nothing changes": program("a = np.ones(3, 'f')", loop("", "tf.square(a)")),
    "array beside one that changes": program(
        "a = np.ones(3, 'f')\nb = np.zeros(30, 'f')", loop("b[i] = 1.0", "tf.square(a)", "total += b[i]")
    ),
}
"""What the op reads is the same in all iterations: it is reported."""

UNMOVED: dict[str, str] = {
    "read before it is made": program(
        "x = tf.zeros([3])", "for i in range(20):\n    total += tf.reduce_sum(x)\n    x = tf.exp(tf.ones([3]))\n"
    ),
    "read after a loop that may leave before": program(
        "x = tf.zeros([3])",
        "for i in range(20):\n    if i == 0:\n        break\n    x = tf.exp(tf.ones([3]))\ntotal += tf.reduce_sum(x)\n",
    ),
    "made of a name that the loop binds": program(
        "", "for i in range(20):\n    n = 5\n    x = tf.exp(tf.linspace(0.0, 1.0, n))\n    total += tf.reduce_sum(x)\n"
    ),
}
"""The op stays the same, and its statement cannot be moved as it is."""
