"""Federated regression: a handful of sites train a small network on their own tables, the server averages."""
import json
import time

import jax
import jax.numpy as jnp
import numpy as np

N_SITES = 6
N_FEATURES = 24
WIDTHS = (320, 320, 1)
ROWS_PER_SITE = 4096
BATCH = 512
ROUNDS = 5
LOCAL_EPOCHS = 2
RATE = 0.02
DECAY = 1e-4


def make_sites(rng):
    """Every site sees the same law with its own offset and noise level."""
    mix = rng.normal(size=(N_FEATURES, 8)).astype(np.float32) / np.sqrt(N_FEATURES)
    head = rng.normal(size=(8,)).astype(np.float32)
    sites = []
    for _ in range(N_SITES):
        shift = rng.normal(scale=0.3, size=(N_FEATURES,)).astype(np.float32)
        x = rng.normal(size=(ROWS_PER_SITE, N_FEATURES)).astype(np.float32) + shift
        y = np.tanh(x @ mix) @ head + rng.normal(scale=0.05, size=ROWS_PER_SITE)
        sites.append((x, y.astype(np.float32)))
    return sites


def init_params(key):
    params, fan_in = [], N_FEATURES
    for width in WIDTHS:
        key, sub = jax.random.split(key)
        params.append({
            "w": jax.random.normal(sub, (fan_in, width)) * jnp.sqrt(2.0 / fan_in),
            "b": jnp.zeros((width,)),
            "gain": jnp.ones((width,)),
        })
        fan_in = width
    return params


def forward(params, x):
    hidden = x
    for layer in params[:-1]:
        hidden = hidden @ layer["w"] + layer["b"]
        mean = hidden.mean(axis=-1, keepdims=True)
        var = jnp.square(hidden - mean).mean(axis=-1, keepdims=True)
        hidden = (hidden - mean) * jax.lax.rsqrt(var + 1e-5) * layer["gain"]
        hidden = jax.nn.gelu(hidden)
    last = params[-1]
    return (hidden @ last["w"] + last["b"])[:, 0] * last["gain"][0]


def loss_fn(params, x, y):
    error = forward(params, x) - y
    huber = jnp.where(jnp.abs(error) < 1.0, 0.5 * error ** 2, jnp.abs(error) - 0.5)
    ridge = sum(jnp.sum(layer["w"] ** 2) for layer in params)
    return huber.mean() + DECAY * ridge


gradient = jax.jit(jax.value_and_grad(loss_fn))


@jax.jit
def descend(params, grads):
    norm = jnp.sqrt(sum(jnp.sum(g ** 2) for g in jax.tree.leaves(grads)))
    scale = jnp.minimum(1.0, 5.0 / (norm + 1e-6))
    return jax.tree.map(lambda p, g: p - RATE * scale * g, params, grads)


@jax.jit
def site_error(params, x, y):
    return jnp.sqrt(jnp.mean((forward(params, x) - y) ** 2))


class Site:
    def __init__(self, number, table):
        self.number = number
        self.x, self.y = table
        self.order = np.random.default_rng(100 + number)
        self.history = []

    def load(self, arrays):
        leaves = [jnp.asarray(a) for a in arrays]
        self.params = jax.tree.unflatten(self.shape, leaves)

    def fit(self, arrays, shape):
        self.shape = shape
        self.load(arrays)
        steps = 0
        for _ in range(LOCAL_EPOCHS):
            order = self.order.permutation(len(self.x))
            for start in range(0, len(order) - BATCH + 1, BATCH):
                rows = order[start:start + BATCH]
                value, grads = gradient(self.params, self.x[rows], self.y[rows])
                self.params = descend(self.params, grads)
                self.history.append(float(value))
                steps += 1
        return [np.asarray(leaf) for leaf in jax.tree.leaves(self.params)], len(self.x), steps

    def evaluate(self, arrays):
        self.load(arrays)
        return float(site_error(self.params, self.x, self.y))


def average(results):
    total = sum(rows for _, rows in results)
    merged = []
    for group in zip(*[arrays for arrays, _ in results]):
        merged.append(sum(a * (rows / total) for a, (_, rows) in zip(group, results)))
    return merged


def run_round(sites, arrays, shape):
    results, steps = [], 0
    for site in sites:
        new, rows, done = site.fit(arrays, shape)
        results.append((new, rows))
        steps += done
    merged = average(results)
    errors = [site.evaluate(merged) for site in sites]
    return merged, steps, float(np.mean(errors))


def main():
    begin = time.perf_counter()
    tables = make_sites(np.random.default_rng(3))
    sites = [Site(i, table) for i, table in enumerate(tables)]
    leaves, shape = jax.tree.flatten(init_params(jax.random.key(0)))
    arrays = [np.asarray(leaf) for leaf in leaves]

    arrays, _, error = run_round(sites, arrays, shape)
    print(f"round 0  rmse {error:.4f}")

    units = 0
    start = time.perf_counter()
    for number in range(1, ROUNDS + 1):
        arrays, steps, error = run_round(sites, arrays, shape)
        units += steps
        if number % 2 == 1:
            print(f"round {number}  rmse {error:.4f}  last loss {sites[0].history[-1]:.4f}")
    seconds = time.perf_counter() - start
    print(json.dumps({"units": units, "seconds": round(seconds, 3),
                      "wall": round(time.perf_counter() - begin, 3)}))


if __name__ == "__main__":
    main()
