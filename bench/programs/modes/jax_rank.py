"""One process of a JAX job with CPU devices: ``jax_rank.py ADDRESS COUNT NUMBER [SLOW]``; process SLOW sleeps 30 ms.

``stepscope.step()`` marks its steps and a span the training's call: JAX's own calls are not recorded.
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import stepscope
from jax.sharding import Mesh, NamedSharding, PartitionSpec

ADDRESS, COUNT, NUMBER = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
SLOW = int(sys.argv[4]) if len(sys.argv) > 4 else -1
ROWS = 32
"""Rows of this process in each step."""


def loss_of(weights, x):
    return jnp.mean(jnp.square(jnp.tanh(x @ weights) - 0.5))


def main():
    jax.distributed.initialize(ADDRESS, COUNT, NUMBER)
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    by_rows, everywhere = NamedSharding(mesh, PartitionSpec("rows")), NamedSharding(mesh, PartitionSpec())

    @jax.jit
    def train_step(weights, x):
        loss, gradient = jax.value_and_grad(loss_of)(weights, x)
        return weights - 0.01 * gradient, loss

    weights = jax.device_put(np.ones((512, 512), np.float32) / 512, everywhere)
    mine = np.random.default_rng(NUMBER).random((ROWS, 512), np.float32)
    for _ in range(300):
        stepscope.step()
        if NUMBER == SLOW:
            time.sleep(0.03)
        x = jax.make_array_from_process_local_data(by_rows, mine)
        with stepscope.span("train step"):
            weights, loss = train_step(weights, x)
            loss.block_until_ready()


main()
