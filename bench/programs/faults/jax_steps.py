"""JAX: a compiled step in the only process of a distributed job."""

import os
import socket

import fault
import numpy as np

fault.begin()
import jax
import jax.numpy as jnp

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
jax.distributed.initialize("127.0.0.1:%d" % port, num_processes=1, process_id=0)
key = jax.random.key(3)
w = jax.random.normal(key, (8, 1))
x = jnp.asarray(np.random.RandomState(2).rand(16, 8).astype("float32"))


@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w - 1.0) ** 2))(w)


for number in range(60):
    w = step(w, x)
    if number == 30:
        fault.moment()
fault.save("w.bin", np.asarray(w).tobytes())
print(float(w.sum()).hex(), jax.process_count())
fault.end(np.asarray(jax.random.key_data(key)).tobytes())
jax.distributed.shutdown()
