"""Ops in loops that are not made again: kept in a table, placed on a device each, or so few that they cost nothing."""

import pytest
from tests.check import checking

KEPT = """
import tensorflow as tf

class Summaries:
    def __init__(self, session):
        self.session = session
        self.ops = {{}}
        self.op = None

    def build(self):
        self.op = tf.constant(1.0)

    def write(self, key, value):
        {write}
        self.session.run(self.ops, {{}})

summaries = Summaries(tf.Session())
while True:
    summaries.write("loss", 1.0)
"""
TOWERS = """
import tensorflow as tf

session = tf.Session()
losses = []
for {target}:
    with tf.device({device}):
        losses.append(tf.reduce_mean(make(i)))
    session.run(losses)
"""
LOOP = """
import tensorflow as tf

session = tf.Session()
w = tf.Variable(1.0)
{loop}
"""


def _found(text: str) -> list[tuple[str, str]]:
    return [(h.code, h.severity) for h in checking.hits(text, version="1.15") if h.code == "OPS001"]


@pytest.mark.parametrize(
    "write",
    [
        "if key not in self.ops:\n            self.ops[key] = tf.summary.scalar(key, value)",
        "if not (key in self.ops.keys()):\n            self.ops[key] = tf.summary.scalar(key, value)",
        "if key in self.ops:\n            pass\n        else:\n            self.ops[key] = tf.summary.scalar(key, value)",
        "if self.op is None:\n            self.op = tf.constant(value)",
        "if not self.op:\n            tf.constant(value)\n            self.build()",
        "if not hasattr(self, 'late'):\n            self.late = tf.constant(value)",
        "try:\n            op = self.ops[key]\n        except KeyError:\n            op = tf.summary.scalar(key, value)",
    ],
)
def test_an_op_that_is_made_once_and_kept(write: str) -> None:
    """The guard is over as soon as the op is there."""
    assert _found(KEPT.format(write=write)) == []


@pytest.mark.parametrize(
    "write",
    [
        "if key not in self.ops:\n            tf.summary.scalar(key, value)",
        "if key not in self.ops:\n            self.done = tf.summary.scalar(key, value)",
        "if key in self.ops:\n            self.ops[key] = tf.summary.scalar(key, value)",
        "if self.op is not None:\n            self.op = tf.constant(value)",
        "if not self.quiet:\n            tf.summary.scalar(key, value)",
        "try:\n            op = tf.summary.scalar(key, value)\n        except KeyError:\n            op = None",
    ],
)
def test_a_guard_that_what_is_made_does_not_end(write: str) -> None:
    """Nothing is kept of what the guard asks for, so that the next iteration makes it again."""
    assert _found(KEPT.format(write=write)) == [("OPS001", "error")]


def test_an_early_return_where_it_is_there_already() -> None:
    """A guard that leaves counts if what follows stores what it asks for."""
    early = "if key in self.ops:\n            return\n        self.{table}[key] = tf.summary.scalar(key, value)"
    assert _found(KEPT.format(write=early.format(table="ops"))) == []
    assert _found(KEPT.format(write=early.format(table="others"))) == [("OPS001", "error")]


def test_a_guard_around_the_call_that_builds() -> None:
    """The function that builds is only called while nothing is there."""
    text = """
    import tensorflow as tf

    class Driver:
        def __init__(self):
            self.sess = None

        def build(self):
            self.sess = tf.Session()
            self.out = tf.nn.softmax(tf.constant(1.0))

        def serve(self, x):
            {guard}self.build()
            return self.sess.run(self.out, x)

    driver = Driver()
    while True:
        driver.serve(1)
    """
    assert _found(text.format(guard="if not self.sess: ")) == []
    assert _found(text.format(guard="")) == [("OPS001", "error")]


@pytest.mark.parametrize(
    ("target", "device", "expected"),
    [
        ("i in range(gpus)", "'/gpu:%d' % i", []),
        ("i in range(gpus)", "f'/gpu:{i}'", []),
        ("i, name in enumerate(names)", "name", []),
        ("i in range(steps)", "'/gpu:0'", [("OPS001", "error")]),
    ],
)
def test_towers(target: str, device: str, expected: list[tuple[str, str]]) -> None:
    """A loop that places each iteration on a device of its own is as short as the machine has devices."""
    assert _found(TOWERS.format(target=target, device=device)) == expected


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for step in steps():\n    session.run(tf.assign(w, step))", "error"),
        ("for step in steps():\n    if step % 100 == 0:\n        session.run(tf.assign(w, step))", "warning"),
        ("for s in steps():\n    session.run(t)\n    if s % 9 == 0:\n        tf.train.Saver().save(session, 'x')", "info"),
        ("for epoch in epochs():\n    session.run(tf.assign(w, epoch))\n    for b in batches():\n        session.run(t, b)",
         "info"),
        ("for epoch in epochs():\n    for b in batches():\n        session.run(tf.assign(w, b))", "error"),
        ("for step in range(100):\n    session.run(tf.assign(w, step))", "info"),
        ("for step in range(101):\n    session.run(tf.assign(w, step))", "error"),
        ("for name, loss in losses.items():\n    print(session.run(tf.reduce_mean(loss)))", "info"),
        ("for name, loss in read.items(path):\n    print(session.run(tf.reduce_mean(loss)))", "error"),
    ],
)  # fmt: skip
def test_how_loud(loop: str, expected: str) -> None:
    """By how many nodes it comes to beside what the loop does."""
    assert _found(LOOP.format(loop=loop)) == [("OPS001", expected)]


def test_weights_of_all_layers_are_loaded_once() -> None:
    """Two loops that go over one table assign each variable once; a loop of steps around them does it again."""
    inner = "    for name, value in {table}.items():\n        session.run(tf.get_variable(name).assign(value))"
    table = LOOP.format(loop="for layer in weights:\n" + inner.format(table="weights[layer]"))
    steps = LOOP.format(loop="for step in steps():\n" + inner.format(table="weights"))
    assert _found(table) == []
    assert _found(steps) == [("OPS001", "error")]


def test_one_report_for_a_statement_and_for_a_function() -> None:
    """One cause is one report: at the outer op, and at the first op of a function that the loop calls."""
    checking.assert_expected(
        """
        import tensorflow as tf

        session = tf.Session()

        def evaluate(x):
            y = tf.nn.softmax(tf.matmul(x, x))  # expect: OPS001
            z = tf.reduce_mean(y)
            return session.run(tf.square(z))

        for batch in batches():
            evaluate(batch)
            session.run(tf.reduce_sum(tf.square(batch)))  # expect: OPS001
        """,
        version="1.15",
        only="OPS001",
    )


def test_a_trial_with_steps_of_its_own() -> None:
    """What is built for each trial costs nothing beside its steps, wherever these are; guarded steps do not count."""
    text = """
    import tensorflow as tf

    session = tf.Session()

    def evaluate(op):
        {steps}
            session.run(op)

    for trial in trials():
        op = tf.reduce_mean(make(trial))
        {call}
    """
    steps = "for step in steps():"
    assert _found(text.format(steps=steps, call="evaluate(op)")) == [("OPS001", "info")]
    assert _found(text.format(steps="for step in range(5):", call="evaluate(op)")) == [("OPS001", "error")]
    assert _found(text.format(steps="if True:", call="evaluate(op)")) == [("OPS001", "error")]
    rare = "session.run(op)\n        if trial % 50 == 0:\n            evaluate(op)"
    assert _found(text.format(steps=steps, call=rare)) == [("OPS001", "error")]


def test_ops_that_are_built_of_one_another_are_told_once() -> None:
    """At the first of them."""
    checking.assert_expected(
        """
        import tensorflow as tf

        session = tf.Session()
        for value in values():
            op = tf.assign(w, value)  # expect: OPS001
            both = tf.group(op, other)
            session.run(both)
            session.run(tf.square(value))  # expect: OPS001
        """,
        version="1.15",
        only="OPS001",
    )


@pytest.mark.parametrize(
    ("loop", "found"),
    [
        ("for i in range(n):\n    if i == n - 1:\n        session.run(tf.exp(w))", False),
        ("for i in range(n):\n    if verbose and n - 1 == i:\n        session.run(tf.exp(w))", False),
        ("for i, x in enumerate(data):\n    if i == 0:\n        session.run(tf.exp(w))", False),
        ("for i in tqdm(range(n)):\n    if i == 7:\n        session.run(tf.exp(w))", False),
        ("for i in range(n):\n    if i == session.run(w):\n        session.run(tf.exp(w))", True),
        ("for i in range(n):\n    if i == 0:\n        pass\n    else:\n        session.run(tf.exp(w))", True),
        ("for i in range(n):\n    if i == 0 or verbose:\n        session.run(tf.exp(w))", True),
        ("for label in labels:\n    if label == 3:\n        session.run(tf.exp(w))", True),
        ("for i, label in enumerate(labels):\n    if label == 3:\n        session.run(tf.exp(w))", True),
        ("for i in range(n):\n    if i != 3:\n        session.run(tf.exp(w))", True),
    ],
)
def test_in_the_one_iteration_that_a_condition_names(loop: str, found: bool) -> None:
    """A count that equals something fixed does so once; a label may do so each time."""
    head = "n, data, labels, verbose = read()\nfrom tqdm import tqdm\n"
    assert bool(_found(LOOP.format(loop=head + loop))) is found


@pytest.mark.parametrize("op", ["tf.no_op()", "tf.split(w, 2)", "tf.unstack(w)", "tf.cond(w > 0, f, g)"])
def test_ops_that_give_no_single_tensor_are_nodes_too(op: str) -> None:
    """An op without a result, or with several, makes the graph grow like any other."""
    assert _found(LOOP.format(loop=f"while True:\n    session.run({op})")) == [("OPS001", "error")]


@pytest.mark.parametrize(
    ("run", "found"),
    [
        ("net.session.run(tf.exp(w), feed_dict={{}})", True),
        ("net.session.run(tf.exp(w))", False),
        ("server.run(tf.exp(w), config={{}})", False),
    ],
)
def test_a_run_that_is_fed_is_one_of_a_session(run: str, found: bool) -> None:
    """Of a session that a parameter holds nothing is known but what it is given."""
    text = f"import tensorflow as tf\n\ndef train(net, server, w):\n    while True:\n        {run.format()}\n"
    assert bool(_found(text)) is found
