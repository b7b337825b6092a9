"""Callbacks, saving, summaries and settings of fit and compile, on real programs."""

from __future__ import annotations

import pytest
from tests.agent.conftest import Armed
from tests.agent.trials.run_trial import run

pytestmark = pytest.mark.tf

BASE = """
import os, tempfile, keras, numpy as np, tensorflow as tf
class Count(keras.callbacks.Callback):
    steps = 0
    def on_train_batch_end(self, batch, logs=None): Count.steps += 1
class Other(Count): pass
x, y = np.ones((160, 2), "float32"), np.ones((160, 1), "float32")
def model(**settings):
    made = keras.Sequential([keras.layers.Dense(1)])
    made.compile("sgd", "mse", **settings)
    return made
"""

CALLBACKS = """
history = model().fit(x, y, batch_size=4, epochs=2, verbose=0, callbacks=[Count(), [Other()]])
print(Count.steps, len(history.history["loss"]), len(history.epoch))
"""

SAVES = """
folder = tempfile.mkdtemp()
made = model()
made.fit(x, y, verbose=0)
for name in "ab":
    made.save(os.path.join(folder, name + ".keras"))
    made.save_weights(os.path.join(folder, name + ".weights.h5"))
checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
print(checkpoint.save(os.path.join(folder, "c"))[-4:], checkpoint.save(os.path.join(folder, "c"))[-4:])
manager = tf.train.CheckpointManager(checkpoint, os.path.join(folder, "m"), max_to_keep=2)
print(os.path.relpath(manager.save(), folder), manager.save(checkpoint_number=7)[-6:])
writer = tf.summary.create_file_writer(os.path.join(folder, "s"))
size = sum(os.path.getsize(os.path.join(folder, "s", name)) for name in os.listdir(os.path.join(folder, "s")))
with writer.as_default():
    for i in range(50): tf.summary.histogram("h", np.ones(1000), step=i)
    @tf.function
    def traced(): tf.summary.scalar("s", 1.0, step=1)
    traced()
writer.flush()
print(sorted(os.listdir(folder)), size == sum(os.path.getsize(e.path) for e in os.scandir(os.path.join(folder, "s"))))
"""

SETTINGS = """
seen = []
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.out = keras.layers.Dense(1)
    def call(self, x):
        seen.append((tf.executing_eagerly(), x.shape[0]))
        return self.out(x)
net = Net()
net.compile("sgd", "mse", run_eagerly=RUN_EAGERLY)
net.fit(x, y, batch_size=4, epochs=1, verbose=0, callbacks=[Count()])
print(Count.steps, sorted({eager for eager, _ in seen}), net.out.compute_dtype, net.out.variable_dtype, net.jit_compile)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
print([len(b[0]) for b in data][:2], len(tf.data.Dataset.range(10).batch(4, drop_remainder=True)))
@tf.function
def double(v): return v + v
print(float(double(tf.constant(2.0))), double._jit_compile)
"""


def test_no_callbacks(armed: Armed) -> None:
    """Fits run without their callbacks, nested ones too; the history stays."""
    trial = run(armed, BASE + CALLBACKS, "no-callbacks")
    assert trial.output == "0 2 2\n", trial.errors
    assert trial.outcome("no-callbacks") == ("in-effect", 2, "")


@pytest.mark.parametrize(("name", "output"), [("Other", "80 2 2\n"), ("Absent", "160 2 2\n")])
def test_without_one_callback(armed: Armed, name: str, output: str) -> None:
    """Callbacks of one class are left out; of a class that there is not, the line names those that there are."""
    trial = run(armed, BASE + CALLBACKS, "without-callback:" + name)
    assert trial.output == output, trial.errors
    outcome, count, text = trial.outcome("without-callback")
    assert (outcome, count) == (("in-effect", 1) if name == "Other" else ("not-reached", 0))
    assert text == ("" if name == "Other" else "no callback Absent; there are Count, Other")


def test_nothing_is_saved(armed: Armed) -> None:
    """Of models, weights and checkpoints only the first is written; all calls return the paths of files."""
    trial = run(armed, BASE + SAVES, "no-checkpoints", "no-summaries")
    paths, managed, files = trial.output.splitlines()
    assert (paths, managed) == ("/c-1 /c-2", "m/ckpt-2 ckpt-7"), trial.errors
    assert "'a.keras', 'a.weights.h5', 'c-1.data-00000-of-00001', 'c-1.index', 'checkpoint', 'm', 's'] True" in files
    assert trial.outcome("no-checkpoints") == ("in-effect", 4, "")
    assert trial.outcome("no-summaries") == ("in-effect", 51, "")


def test_settings_of_a_fit(armed: Armed) -> None:
    """Larger batches, several steps a call, graphs, XLA and mixed precision: the program runs with each."""
    program = BASE + SETTINGS.replace("RUN_EAGERLY", "False")
    trial = run(armed, program, "batch:2", "steps-per-execution:10", "xla-on", "mixed-bfloat16")
    assert trial.output.splitlines() == [
        "2 [False] bfloat16 float32 True",
        "[8, 8] 1",
        "4.0 True",
    ], trial.errors
    assert {name: trial.outcome(name)[:2] for name in ("batch", "steps-per-execution", "xla-on")} == {
        "batch": ("in-effect", 3),
        "steps-per-execution": ("in-effect", 1),
        "xla-on": ("in-effect", 2),
    }
    assert trial.outcome("mixed-bfloat16")[0] == "in-effect"


def test_half_a_batch(armed: Armed) -> None:
    """batch:1/2 halves the batches of a fit and of a dataset; there are twice as many steps."""
    trial = run(armed, BASE + SETTINGS.replace("RUN_EAGERLY", "False"), "batch:1/2")
    assert trial.output.splitlines()[:2] == ["80 [False] float32 float32 False", "[2, 2] 5"], trial.errors
    assert trial.outcome("batch") == ("in-effect", 3, "")


def test_an_eager_model_runs_in_graphs(armed: Armed) -> None:
    """``graph`` turns run_eagerly off."""
    trial = run(armed, BASE + SETTINGS.replace("RUN_EAGERLY", "True"), "graph")
    assert trial.output.splitlines()[0] == "40 [False] float32 float32 False", trial.errors
    assert trial.outcome("graph")[0] == "in-effect"


def test_settings_that_cannot_be_changed(armed: Armed) -> None:
    """What runs eagerly takes no steps per execution, and XLA is not turned off where it is not on: both say why."""
    trial = run(armed, BASE + SETTINGS.replace("RUN_EAGERLY", "True"), "steps-per-execution:4", "xla-off", "batch:5")
    assert trial.output.splitlines()[:2] == ["8 [False, True] float32 float32 False", "[20, 20] 2"], trial.errors
    assert trial.outcome("steps-per-execution") == ("not-reached", 0, "the model runs eagerly")
    assert trial.outcome("xla-off")[:2] == ("not-reached", 0)


def test_a_fit_without_validation(armed: Armed) -> None:
    """Neither validation data nor a split is evaluated; who reads its results finds those of the training."""
    program = f"""{BASE}
evaluated = []
class Watch(keras.callbacks.Callback):
    def on_test_begin(self, logs=None): evaluated.append(1)
first = model().fit(x, y, verbose=0, validation_data=(x, y), callbacks=[Watch()])
second = model().fit(x, y, verbose=0, validation_split=0.5, callbacks=[Watch()])
print(first.history["val_loss"] == first.history["loss"], sorted(second.history), evaluated)
"""
    trial = run(armed, program, "no-validation")
    assert trial.output == "True ['loss', 'val_loss'] []\n", trial.errors
    assert trial.outcome("no-validation") == ("in-effect", 2, "")


def test_a_model_without_metrics(armed: Armed) -> None:
    """Metrics of compile are left out; a program that reads their results gets those of the loss."""
    program = f"{BASE}\nhistory = model(metrics=['mae']).fit(x, y, verbose=0).history\n"
    program += "print(sorted(history), history['mae'] == history['loss'])\n"
    trial = run(armed, program, "no-metrics")
    assert trial.output == "['loss', 'mae'] True\n", trial.errors
    assert trial.outcome("no-metrics") == ("in-effect", 1, "")


KERNELS = """
layers = keras.layers
made = keras.Sequential([
    layers.Conv2D(4, 11, padding="same"), layers.Conv2D(4, 9, padding="same", groups=2), layers.Conv2D(4, 9),
    layers.Conv2D(4, 9, padding="same", strides=2), layers.Conv2D(4, 7, padding="same"),
    layers.DepthwiseConv2D(11, padding="same"), layers.GlobalAveragePooling2D(), layers.Dense(1)])
made(np.ones((1, 32, 32, 4), "float32"))
made.compile("sgd", "mse")
made.fit(np.ones((80, 32, 32, 4), "float32"), np.ones((80, 1), "float32"), batch_size=2, verbose=0)
print([layer.kernel_size[0] for layer in made.layers[:6]])
"""


def test_small_kernels(armed: Armed) -> None:
    """Large kernels whose layer mixes all channels and keeps the shape become 3 x 3; all other layers stay."""
    trial = run(armed, BASE + KERNELS, "small-kernels")
    assert trial.output == "[3, 9, 9, 9, 7, 11]\n", trial.errors
    assert trial.outcome("small-kernels") == ("in-effect", 1, "")


LOSSES = """
calls = []
def dear(y_true, y_pred):
    calls.append("dear")
    return tf.reduce_sum(tf.linalg.expm(tf.matmul(y_pred, y_pred, transpose_b=True))) + 0.0 * y_pred[:, 0]
class Own(keras.losses.Loss):
    def call(self, y_true, y_pred):
        calls.append("own")
        return tf.square(y_true - y_pred)
for loss in (dear, Own(), "mse"):
    made = keras.Sequential([keras.layers.Dense(1)])
    made.compile("sgd", loss)
    made.fit(x, y, batch_size=80, epochs=1, verbose=0)
with tf.GradientTape() as tape:
    value = keras.losses.BinaryCrossentropy()(y[:4], made(x[:4]))
gradients = tape.gradient(value, made.trainable_variables)
print(calls, value.shape, [bool(tf.reduce_any(one != 0)) for one in gradients])
"""


def test_a_simple_loss(armed: Armed) -> None:
    """Whatever the loss is, a function, a class of the program, a name, or one that a loop calls; gradients stay."""
    trial = run(armed, BASE + LOSSES, "simple-loss")
    assert trial.output == "[] () [True, True]\n", trial.errors
    outcome, count, _ = trial.outcome("simple-loss")
    assert outcome == "in-effect"
    assert count >= 4
