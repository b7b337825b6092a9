"""A small ensemble of MLP regressors trained with a Shampoo-like optimizer in JAX."""
import json
import os
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

MEMBERS = 4
FEATURES = 80
HIDDEN = 80
BATCH = 1024
ROWS = 16384
STEPS = 900
REFRESH = 20
LR = 2e-2


@struct.dataclass
class State:
    step: jax.Array
    params: dict
    momentum: dict
    left: dict
    right: dict
    left_root: dict
    right_root: dict


def make_table(seed=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, FEATURES)).astype("float32")
    w = rng.normal(size=(FEATURES, 4)).astype("float32") / np.sqrt(FEATURES)
    y = np.sin(x @ w).sum(1, keepdims=True) + 0.05 * rng.normal(size=(ROWS, 1))
    return x, y.astype("float32")


def init_member(key):
    sizes = [(FEATURES, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, HIDDEN)]
    keys = jax.random.split(key, len(sizes) + 1)
    params = {
        f"w{i}": jax.random.normal(k, s) / jnp.sqrt(s[0])
        for i, (k, s) in enumerate(zip(keys, sizes))
    }
    params["head"] = jax.random.normal(keys[-1], (HIDDEN, 1)) / jnp.sqrt(HIDDEN)
    mats = {k: v for k, v in params.items() if k != "head"}
    return State(
        step=jnp.zeros((), jnp.int32),
        params=params,
        momentum=jax.tree.map(jnp.zeros_like, params),
        left={k: jnp.eye(v.shape[0]) * 1e-3 for k, v in mats.items()},
        right={k: jnp.eye(v.shape[1]) * 1e-3 for k, v in mats.items()},
        left_root={k: jnp.eye(v.shape[0]) for k, v in mats.items()},
        right_root={k: jnp.eye(v.shape[1]) for k, v in mats.items()},
    )


def forward(params, x):
    for name in ("w0", "w1", "w2"):
        x = jax.nn.gelu(x @ params[name])
    return x @ params["head"]


def loss_fn(params, x, y):
    return jnp.mean((forward(params, x) - y) ** 2)


def inverse_root(mat):
    vals, vecs = jnp.linalg.eigh(mat + 1e-6 * jnp.eye(mat.shape[0]))
    return (vecs * jnp.maximum(vals, 1e-6) ** -0.25) @ vecs.T


def refresh_roots(stats):
    left, right, _, _ = stats
    return (jax.tree.map(inverse_root, left), jax.tree.map(inverse_root, right))


def keep_roots(stats):
    _, _, left_root, right_root = stats
    return left_root, right_root


def member_step(state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(state.params, x, y)
    left = {k: 0.95 * state.left[k] + 0.05 * grads[k] @ grads[k].T for k in state.left}
    right = {k: 0.95 * state.right[k] + 0.05 * grads[k].T @ grads[k] for k in state.right}
    left_root, right_root = jax.lax.cond(
        state.step % REFRESH == 0, refresh_roots, keep_roots,
        (left, right, state.left_root, state.right_root),
    )

    def direction(name, g):
        if name not in left_root:
            return g
        d = left_root[name] @ g @ right_root[name]
        return d * jnp.linalg.norm(g) / (jnp.linalg.norm(d) + 1e-8)

    update = {k: direction(k, g) for k, g in grads.items()}
    momentum = jax.tree.map(lambda m, u: 0.9 * m + u, state.momentum, update)
    params = jax.tree.map(lambda p, m: p - LR * m, state.params, momentum)
    new = State(state.step + 1, params, momentum, left, right, left_root, right_root)
    return new, loss


ensemble_step = jax.jit(jax.vmap(member_step, in_axes=(0, None, None)), donate_argnums=0)


@jax.jit
def ensemble_mse(params, x, y):
    preds = jax.vmap(forward, in_axes=(0, None))(params, x)
    return jnp.mean((preds.mean(0) - y) ** 2)


def batches(x, y, steps, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(x))
    pos = 0
    for _ in range(steps):
        if pos + BATCH > len(x):
            order, pos = rng.permutation(len(x)), 0
        idx = order[pos:pos + BATCH]
        pos += BATCH
        yield x[idx], y[idx]


def main():
    begin = time.perf_counter()
    x, y = make_table()
    x_val, y_val = x[-2048:], y[-2048:]
    x_train, y_train = x[:-2048], y[:-2048]
    keys = jax.random.split(jax.random.PRNGKey(0), MEMBERS)
    state = jax.vmap(init_member)(keys)

    warm = 5
    start = None
    history = []
    for i, (bx, by) in enumerate(batches(x_train, y_train, STEPS + warm, seed=1)):
        if i == warm:
            jax.block_until_ready(state)
            start = time.perf_counter()
        state, loss = ensemble_step(state, bx, by)
        if i % 20 == 0:
            history.append(np.asarray(loss).mean())
        if (i + 1) % 300 == 0:
            mse = float(ensemble_mse(state.params, x_val, y_val))
            print(f"step {i + 1}: train {history[-1]:.4f} ensemble val {mse:.4f}")
    jax.block_until_ready(state)
    seconds = time.perf_counter() - start
    print(json.dumps({"units": STEPS, "seconds": round(seconds, 3),
                      "wall": round(time.perf_counter() - begin, 3)}))


if __name__ == "__main__":
    main()
