"""Ends with an input that was not read to its end: inputs_left.py WAY."""

import sys

from work import last, say, session


def tf_iterator():
    global iterator
    import numpy as np
    import tensorflow as tf

    data = tf.data.Dataset.range(1000).map(
        lambda n: tf.numpy_function(lambda v: np.float32(v), [n], tf.float32), num_parallel_calls=2
    )
    iterator = iter(data.batch(4).prefetch(4))
    say(float(next(iterator)[0]))


def tf_generator():
    global iterator
    import tensorflow as tf

    def numbers():
        number = 0
        while True:
            yield number
            number += 1

    data = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int64)).batch(4).prefetch(4)
    iterator = iter(data)
    say(int(next(iterator)[-1]))


def _loader(**more):
    import torch

    torch.manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.arange(64.0).reshape(32, 2))
    return torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, **more)


def torch_loader():
    say(sum(float(batch[0].sum()) for batch in _loader()))


def torch_iterator():
    global iterator
    iterator = iter(_loader())
    say(float(next(iterator)[0].sum()))


def torch_persistent():
    global loader
    loader = _loader(persistent_workers=True)
    say([sum(float(batch[0].sum()) for batch in loader) for _ in range(2)])


def torch_spawned():
    say(sum(float(batch[0].sum()) for batch in _loader(multiprocessing_context="spawn")))


def torch_backward():
    """Backward passes on threads, and a graph that is there to the end. Daemons still in one end in an abort."""
    global loss
    import threading

    import torch

    weight = torch.ones(40, 40, requires_grad=True)
    threads = [threading.Thread(target=lambda: (weight @ weight).sum().backward()) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    loss = (weight @ weight).sum()
    loss.backward(retain_graph=True)
    say(float(weight.grad.sum()))


def keras_generator():
    """A generator that Keras on JAX has not read to its end."""
    global generator, model
    import os

    os.environ["KERAS_BACKEND"] = "jax"
    import keras
    import numpy as np

    def rows():
        while True:
            yield np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)

    generator = rows()
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    say(model.fit(generator, steps_per_epoch=5, verbose=0).history["loss"])


def jax_pending():
    """Work that was dispatched and not waited for."""
    global pending
    import jax
    import jax.numpy as jnp

    step = jax.jit(lambda array: jnp.tanh(array @ array))
    pending = jnp.ones((400, 400)) / 400
    for _ in range(20):
        pending = step(pending)
    say(pending.shape)


def jax_callback():
    import jax
    import jax.numpy as jnp
    import numpy as np

    shape = jax.ShapeDtypeStruct((4,), jnp.float32)
    step = jax.jit(lambda array: jax.pure_callback(lambda value: np.asarray(value) * 2, shape, array))
    say(float(step(jnp.ones(4)).sum()))


def onnx_threads():
    """A session that threads have called and that is there to the end. Daemons that still call it end in an abort."""
    global ran
    import threading

    import numpy as np

    ran = session()
    value = np.ones(4, np.float32)
    threads = [threading.Thread(target=ran.run, args=(None, {"x": value})) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say(ran.run(None, {"x": value})[0].tolist())


def onnx_async():
    """Calls that answer on threads of ONNX Runtime's, each before the next; the session is there to the end.

    One that nobody waits for aborts the process at its end, without stepscope too (ONNX Runtime 1.31, Python 3.11).
    """
    global ran
    ran = session()
    for _ in range(20):
        answered = asked(ran)
        assert answered.wait(60)
    say(answered.values)


def asked(ran):
    """An event that is set when the session has answered, with the answer."""
    import threading

    import numpy as np

    answered = threading.Event()

    def answer(values, event, error):
        event.values = error or values[0].tolist()
        event.set()

    ran.run_async(None, {"x": np.ones(4, np.float32)}, answer, answered)
    return answered


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    last()
