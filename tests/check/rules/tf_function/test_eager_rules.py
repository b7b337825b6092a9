"""Rules of eager code and of Keras' switches: variants and near-misses; expectations stand on the lines."""

from __future__ import annotations

import pytest
from tests.check.checking import assert_expected, codes, hits

HEAD = """
import tensorflow as tf
data = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD()
"""
STEP = """
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
"""


def test_eager_steps() -> None:
    """A tape in the loop, in a method of another file, behind progress bars, in a while loop."""
    assert_expected(
        {
            "main.py": """
            import tensorflow as tf
            from tqdm import tqdm
            from trainer import Trainer

            data = tf.data.TFRecordDataset("x").batch(8)
            model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
            optimizer = tf.keras.optimizers.SGD()
            bar = tqdm(data)
            for x in bar:
                with tf.GradientTape() as tape:  # expect: TFF005
                    loss = tf.reduce_mean(model(x))
                optimizer.apply_gradients(zip(tape.gradient(loss, model.weights), model.weights))
            iterator = iter(data)
            while True:
                with tf.GradientTape(persistent=True) as tape:  # expect: TFF005
                    loss = model(next(iterator))
                optimizer.minimize(loss, model.weights, tape=tape)
            trainer = Trainer(model)
            for epoch in range(100):
                trainer.epoch(data)
            for step, x in enumerate(tqdm(data)):
                print(model(x))  # expect: TFF005
            """,
            "trainer.py": """
            import tensorflow as tf

            class Trainer:
                def __init__(self, model):
                    self.model = model
                    self.optimizer = tf.keras.optimizers.Adam()

                def epoch(self, data):
                    for x in data:
                        self.step(x)

                def step(self, x):
                    with tf.GradientTape() as tape:  # expect: TFF005
                        loss = tf.reduce_mean(self.model(x))
                    gradients = tape.gradient(loss, self.model.trainable_variables)
                    self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
            """,
        },
        only="TFF005",
    )


def test_eager_loops_over_tf_range() -> None:
    """A loop over tf.range that nobody compiles, and works on elements of tensors."""
    assert_expected(
        """
        import tensorflow as tf

        def fill(table, n):
            out = tf.Variable(tf.zeros([64, 64]))
            for i in tf.range(n):  # expect: TFF005
                for j in tf.range(n):
                    out[i, j].assign(out[j, i] + 1.0)
            return out

        @tf.function
        def compiled(n):
            out = tf.Variable(tf.zeros([64, 64]))
            for i in tf.range(n):
                for j in tf.range(n):
                    out[i, j].assign(out[j, i] + 1.0)

        @tf.function
        def step(i):
            return i + 1

        for i in tf.range(1000):
            step(i)
        for k in range(50):
            fill(None, 64)
            compiled(64)
        """,
        only="TFF005",
    )


@pytest.mark.parametrize(
    "text",
    [
        "@tf.function\ndef step(x):" + STEP + "for x in data:\n    step(x)\n",
        "def step(x):" + STEP + "fast = tf.function(step)\nfor x in data:\n    fast(x)\n",
        "def step(x):" + STEP + "@tf.function\ndef both(x):\n    step(x)\nfor x in data:\n    both(x)\n",
        "def step(x):" + STEP + "for x in range(5):\n    step(x)\n",
        "def step(x):" + STEP + "step(1)\n",
        "from mine import compiled\n@compiled\ndef step(x):" + STEP + "for x in data:\n    step(x)\n",
        "def step(x):" + STEP + "runner = Runner(step)\nfor x in data:\n    step(x)\n",
        "strategy = tf.distribute.MirroredStrategy()\ndef step(x):"
        + STEP
        + "@tf.function\ndef all(x):\n    strategy.run(step, (x,))\nfor x in data:\n    all(x)\n",
        "def step(x):" + STEP.replace("model(x))", "model(x).numpy())") + "for x in data:\n    step(x)\n",
        (
            "def saliency(x):\n    with tf.GradientTape() as t:\n        y = model(x)\n    return t.gradient(y, x)\n"
            "for x in data:\n    saliency(x)\n"
        ),
        "class Mine(tf.keras.Model):\n    def train_step(self, x):" + STEP.replace("\n", "\n    "),
        "model = tf.function(model)\nfor x in data:\n    model(x)\n",
        "for x in data.take(3):\n    model(x)\n",
        "def show(x):\n    return model(x)\nshow(1)\n",
        "for x in [1, 2, 3]:\n    model(x)\n",
    ],
)
def test_steps_that_are_left_alone(text: str) -> None:
    """Compiled in any way, handed on, run a few times, or full of Python."""
    assert "TFF005" not in codes(HEAD + text)


def test_tests_are_left_alone() -> None:
    """The same loop in a test file is not what somebody waits for."""
    text = HEAD + "for x in data:\n    model(x)\n"
    assert "TFF005" in codes({"tools/show.py": text})
    assert codes({"tests/test_model.py": text}) == []


def test_eager_switches() -> None:
    """The switches of functions, pipelines and models, where nothing conditions them."""
    assert_expected(
        """
        import tensorflow as tf
        tf.config.run_functions_eagerly(True)  # expect: TFF006
        tf.data.experimental.enable_debug_mode()  # expect: TFF006
        model = tf.keras.Sequential([])
        model.compile("sgd", run_eagerly=True)  # expect: TFF006
        model.run_eagerly = True  # expect: TFF006
        model.compile("sgd", run_eagerly=False)
        model.compile("sgd", run_eagerly=args.debug)
        if args.debug:
            model.run_eagerly = True
            tf.data.experimental.enable_debug_mode()

        def debug():
            model.run_eagerly = True

        if args.debug:
            debug()
        """
    )


@pytest.mark.parametrize(
    "text",
    [
        "tf.config.run_functions_eagerly(True)\nwork()\ntf.config.run_functions_eagerly(False)\n",
        "tf.config.run_functions_eagerly(flag)\n",
        (
            "class Mine(tf.keras.Model):\n    def train_step(self, x):\n        return {'loss': x.numpy()}\n"
            "mine = Mine()\nmine.compile('sgd', run_eagerly=True)\nmine.run_eagerly = True\n"
        ),
        "tf.config.run_functions_eagerly(True)\ndef fill(x):\n    grid.fill(x.numpy())\n",
    ],
)
def test_switches_that_are_left_alone(text: str) -> None:
    """Switched off again, by an option, or needed by Python code."""
    assert codes("import tensorflow as tf\n" + text) == []


def test_state_that_is_made_per_step() -> None:
    """Optimizers and metrics of the innermost loop that uses them."""
    assert_expected(
        """
        import tensorflow as tf
        data = tf.data.TFRecordDataset("x").batch(8)
        for x in data:
            optimizer = tf.keras.optimizers.Adam()  # expect: TFF009
            optimizer.apply_gradients(grads(x))
            mean = tf.keras.metrics.Mean()  # expect: TFF009
            mean.update_state(x)
        for epoch in range(100):
            mean = tf.keras.metrics.Mean()
            for x in data:
                mean.update_state(x)
        for fold in range(20):
            model = tf.keras.Sequential([])
            optimizer = tf.keras.optimizers.Adam()
            optimizer.minimize(loss, model.weights)
        for i in range(3):
            mean = tf.keras.metrics.Mean()
            mean.update_state(i)
        for x in data:
            if x is None:
                mean = tf.keras.metrics.Mean()
            mean.update_state(x)
        """,
        only="TFF009",
    )


def test_results_that_are_read_each_step() -> None:
    """Printed, logged and added up in each iteration; not what is read now and then or used."""
    assert_expected(
        """
        import tensorflow as tf
        data = tf.data.TFRecordDataset("x").batch(8)

        @tf.function
        def step(x):
            return x, x

        for x in data:
            loss, rest = step(x)
            print(float(loss))  # expect: TFF010
        for x in data:
            losses.append(step(x)[0].numpy())  # expect: TFF010
        for i, x in enumerate(data):
            loss, rest = step(x)
            if i % 100 == 0:
                print(float(loss))
        for x in data:
            loss, rest = step(x)
            save(rest.numpy())
        for x in range(100):
            print(float(step(x)[0]))
        """,
        only="TFF010",
    )


def test_a_method_that_its_base_class_compiles() -> None:
    """The base class, in another file, hands the method to something that may compile it."""
    base = "class Agent:\n    def __init__(self):\n        self.train = compiled(self._train)\n"
    agent = (
        "import tensorflow as tf\nfrom base import Agent\n"
        "class Mine(Agent):\n    def _train(self, x):\n        for i in range(99):\n"
        "            with tf.GradientTape() as tape:\n                loss = tf.reduce_sum(x)\n"
        "            self.optimizer.apply_gradients(tape.gradient(loss, x))\n"
    )
    assert codes({"agent.py": agent, "base.py": base}) == []
    assert codes({"agent.py": agent, "base.py": "class Agent:\n    pass\n"}) == ["TFF005"]


def test_another_framework_compiles_the_methods_that_it_calls() -> None:
    """A class of a library that is not known may be compiled by it; one of TensorFlow's or the project's is not."""
    text = HEAD + (
        "{imports}\n"
        "class Task({base}):\n"
        "    def train_step(self, x):\n"
        "        with tf.GradientTape() as tape:\n"
        "            loss = model(x)\n"
        "        optimizer.apply_gradients(zip(tape.gradient(loss, v), v))\n"
        "task = Task()\n"
        "for x in batches():\n"
        "    task.train_step(x)\n"
    )
    assert "TFF005" not in codes(text.format(imports="from official.core import base", base="base.Task"))
    assert "TFF005" in codes(text.format(imports="import abc", base="abc.ABC"))
    assert "TFF005" in codes(text.format(imports="", base="tf.Module"))
    assert "TFF005" in codes(text.format(imports="class Base:\n    pass", base="Base"))
    far = text.format(imports="from official.core import base\nclass Own(base.Task):\n    pass", base="Own")
    assert "TFF005" not in codes(far)


@pytest.mark.parametrize(
    ("loop", "update", "expected"),
    [
        ("range(100)", "w.assign_sub(tape.gradient(loss, w))", "info"),
        ("range(101)", "w.assign_sub(tape.gradient(loss, w))", "warning"),
        ("steps()", "w.assign_sub(tape.gradient(loss, w))", "warning"),
        ("range(100)", "optimizer.apply_gradients([(tape.gradient(loss, w), w)])", "error"),
    ],
)
def test_a_short_loop_without_an_optimizer(loop: str, update: str, expected: str) -> None:
    """Tracing a graph takes as long as a hundred small steps."""
    text = HEAD + (
        f"w = tf.Variable(1.0)\nfor i in {loop}:\n    with tf.GradientTape() as tape:\n"
        f"        loss = tf.square(w - 1)\n    {update}\n"
    )
    assert [h.severity for h in hits(text) if h.code == "TFF005"] == [expected]


def test_a_saved_model_is_a_graph_already() -> None:
    """Its functions run as they were traced, under a tape as well."""
    text = (
        "import tensorflow as tf\nmodel = {model}\noptimizer = tf.keras.optimizers.SGD()\nfor x in batches():\n"
        "    with tf.GradientTape() as tape:\n        loss = model.loss(x)\n"
        "    optimizer.apply_gradients(zip(tape.gradient(loss, model.vars), model.vars))\n"
    )
    assert "TFF005" not in codes(text.format(model="tf.saved_model.load('x')"))
    assert "TFF005" in codes(text.format(model="build()"))


def test_a_function_that_is_offered_may_be_compiled_by_its_callers() -> None:
    """Gradients without an update, in a function that nothing here calls: a library's."""
    text = HEAD + (
        "def regularize(x, n):\n    for _ in range(n):\n        with tf.GradientTape() as tape:\n"
        "            loss = model(x)\n        x = x + tape.gradient(loss, x)\n    return x\n"
    )
    assert "TFF005" not in codes(text)
    assert "TFF005" in codes(f"{text}for x in batches():\n    regularize(x, 500)\n")


@pytest.mark.parametrize(("result", "fixed"), [("loss", True), ("loss.numpy()", False), ("float(loss)", False)])
def test_a_step_that_reads_its_result_is_told_and_not_decorated(result: str, fixed: bool) -> None:
    """Decorated, ``.numpy()`` at the end of the step would be an error."""
    text = f"{HEAD}def step(x):{STEP}    return {result}\n\nfor x in data:\n    step(x)\n"
    found = [h for h in hits(text) if h.code == "TFF005"]
    assert [h.fix is not None for h in found] == [fixed]


def test_a_model_whose_call_is_compiled_is_not_called_op_by_op() -> None:
    """``@tf.function`` above ``call``: 0.38 ms a call, 0.31 ms with another tf.function around it (TensorFlow 2.15)."""
    text = """
    import tensorflow as tf
    data = tf.data.Dataset.from_tensor_slices(tf.zeros([960, 8])).batch(16)

    class Net(tf.keras.Model):
        {decorator}
        def call(self, x):
            return tf.nn.relu(x)

        def test(self, data):
            return [self(x) for x in data]

    def test(model):
        for x in data:
            print(model(x))

    for epoch in range(100):
        test(Net())
    """
    assert "TFF005" not in codes(text.format(decorator="@tf.function"))
    assert codes(text.format(decorator="")) == ["TFF005"]


SCRIPT = """
import tensorflow as tf
from loss import ciou

if __name__ == "__main__":
    tf.config.run_functions_eagerly(True)
    print(ciou(tf.zeros([1, 4]), tf.ones([1, 4])))
"""
LOSS = """
import tensorflow as tf

def ciou(a, b):
    return tf.reduce_sum(tf.abs(a - b))
"""


def test_switches_of_demonstrations() -> None:
    """A script that runs no compiled step, nor what it imports, is slowed down by no switch."""
    assert "TFF006" not in codes({"main.py": SCRIPT, "loss.py": LOSS})
    assert "TFF006" in codes({"main.py": SCRIPT, "loss.py": LOSS.replace("def", "@tf.function\ndef")})
    assert "TFF006" in codes({"main.py": f"{SCRIPT}    model.fit(x, y)\n", "loss.py": LOSS})
    exported = f"{SCRIPT}    tf.function(ciou).get_concrete_function(spec, spec)\n"
    assert "TFF006" not in codes({"main.py": exported, "loss.py": LOSS})
