"""Thirty steps of JAX: ten of one shape, ten of another, ten whose loss nobody reads; prints what JAX compiled."""

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np

compiled = []
jax.monitoring.register_event_duration_secs_listener(lambda event, _, **more: compiled.append((event, str(more))))


@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).mean())(w), (x @ w).sum()


w = jnp.ones((4,))
seen = 0.0
for at in range(30):
    x = np.full((8 if at < 10 else 16, 4), 0.01 * at, np.float32)
    w, loss = step(w, x)
    if at < 20:
        seen += float(loss)
jax.block_until_ready((w, loss))
print(seen.hex(), np.asarray(w).tobytes().hex(), compiled)
