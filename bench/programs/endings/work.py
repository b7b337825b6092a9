"""What every program here does before it ends: a few steps of a framework; and the note of its last line."""

import os
import signal
import sys
import time


def note(word):
    """Append a word and the moment to the file of the bench."""
    fd = os.open(os.environ["ENDINGS_NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, f"{word} {time.monotonic_ns()}\n".encode())
    os.close(fd)


def last():
    """Note that nothing of the program follows: to be called by its last statement."""
    note("last")


def wait():
    """Note that the bench may send its signal, and wait for it."""
    note("ready")
    while True:
        signal.pause()


def say(text):
    """Print at once, so that the order of lines of several processes is that of their work."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def steps(framework, number=8):
    """Train or predict a little with one framework; print what came of it."""
    say(f"{framework}: {FRAMEWORKS[framework](number):.4f}")


def live_long(framework):
    """Run Python for longer than a process lives unsampled; under stepscope, until it is sampled."""
    began, before = time.monotonic(), len(os.listdir("/proc/self/task"))
    late = framework in ("python", "numpy") and "STEPSCOPE_RUN" in os.environ
    while time.monotonic() < began + (60 if late and len(os.listdir("/proc/self/task")) == before else 8):
        sum(range(1000))


def _plain(number):
    return float(sum(value * value for value in range(number)))


def _numpy(number):
    import numpy as np

    array = np.random.default_rng(1).random((64, 64))
    for _ in range(number):
        array = np.tanh(array @ array)
    return float(array.sum())


def _tensorflow(number):
    import tensorflow as tf

    weight = tf.Variable(tf.ones((8, 1)))

    @tf.function
    def step(batch):
        weight.assign_sub(0.01 * tf.reduce_mean(batch, axis=0)[:, None])
        return tf.reduce_sum(weight)

    data = tf.data.Dataset.range(4 * number).map(lambda n: tf.fill((8,), tf.cast(n, tf.float32))).batch(4)
    return float([step(batch) for batch in data][-1])


def _torch(number):
    import torch

    torch.manual_seed(1)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(number):
        optimizer.zero_grad()
        loss = model(torch.ones(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
    return float(loss)


def _jax(number):
    import jax
    import jax.numpy as jnp

    step = jax.jit(lambda weight: weight - 0.1 * jax.grad(lambda w: jnp.sum(w**2))(weight))
    weight = jnp.ones(8)
    for _ in range(number):
        weight = step(weight)
    return float(weight.sum())


def session():
    """A session of ONNX Runtime that doubles four numbers."""
    import onnxruntime
    from onnx import TensorProto, helper

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "doubles", ends[:1], ends[1:])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def _onnxruntime(number):
    import numpy as np

    ran = session()
    value = np.ones(4, np.float32)
    for _ in range(number):
        (value,) = ran.run(None, {"x": value})
    return float(value.sum())


FRAMEWORKS = {
    "python": _plain,
    "numpy": _numpy,
    "tensorflow": _tensorflow,
    "torch": _torch,
    "jax": _jax,
    "onnxruntime": _onnxruntime,
}
