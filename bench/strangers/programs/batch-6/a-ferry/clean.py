"""Masked-patch model on synthetic river-gauge series: flax, optax, prefetch thread, async-style logging."""
import argparse
import functools
import os
import queue
import tempfile
import threading
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import serialization

GAUGES = 24
WINDOW = 128
PATCH = 8
DIM = 128
BATCH = 8


class Mixer(nn.Module):
    tokens: int

    @nn.compact
    def __call__(self, x):
        h = nn.LayerNorm()(x).swapaxes(1, 2)
        h = nn.Dense(self.tokens)(nn.gelu(nn.Dense(self.tokens * 4)(h)))
        x = x + h.swapaxes(1, 2)
        h = nn.LayerNorm()(x)
        return x + nn.Dense(DIM)(nn.gelu(nn.Dense(DIM * 4)(h)))


class GaugeModel(nn.Module):
    depth: int = 3

    @nn.compact
    def __call__(self, series, mask):
        b = series.shape[0]
        n = WINDOW // PATCH * GAUGES // 4
        x = series.reshape(b, n, -1)
        x = nn.Dense(DIM)(x)
        token = self.param("mask", nn.initializers.normal(0.02), (DIM,))
        x = jnp.where(mask[..., None], token, x)
        for i in range(self.depth):
            x = Mixer(tokens=n, name=f"mixer_{i}")(x)
        return nn.Dense(series.reshape(b, n, -1).shape[-1])(x)


def make_series(length, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(length, dtype=np.float32)[:, None]
    period = rng.uniform(20, 90, GAUGES).astype(np.float32)
    flow = np.sin(2 * np.pi * t / period) + 0.2 * rng.normal(size=(length, GAUGES))
    return flow.astype(np.float32)


def produce(series, out, stop, seed):
    rng = np.random.default_rng(seed)
    tokens = WINDOW // PATCH * GAUGES // 4
    while not stop.is_set():
        starts = rng.integers(0, len(series) - WINDOW, BATCH)
        x = np.stack([series[s:s + WINDOW] for s in starts])
        mask = rng.random((BATCH, tokens)) < 0.3
        while not stop.is_set():
            try:
                out.put((x, mask), timeout=0.2)
                break
            except queue.Full:
                pass


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=120)
    args = ap.parse_args()
    t0 = time.perf_counter()
    model = GaugeModel()
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    tokens = WINDOW // PATCH * GAUGES // 4
    params = model.init(jax.random.key(0), jnp.zeros((1, WINDOW, GAUGES)),
                        jnp.zeros((1, tokens), bool))
    opt_state = tx.init(params)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step_fn(params, opt_state, x, mask):
        def loss_fn(p):
            pred = model.apply(p, x, mask)
            err = (pred - x.reshape(pred.shape)) ** 2
            return (err * mask[..., None]).sum() / (mask.sum() * pred.shape[-1])

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        norms = jax.tree.map(jnp.linalg.norm, grads)
        return optax.apply_updates(params, updates), opt_state, loss, norms

    series = make_series(20000, seed=4)
    feed, stop = queue.Queue(maxsize=3), threading.Event()
    worker = threading.Thread(target=produce, args=(series, feed, stop, 6), daemon=True)
    worker.start()
    times, losses = [], []
    with tempfile.TemporaryDirectory() as tmp:
        for step in range(args.steps):
            s = time.perf_counter()
            x, mask = feed.get()
            report = (step + 1) % 40 == 0
            params, opt_state, loss, norms = step_fn(params, opt_state, jax.device_put(x), mask)
            losses.append(float(loss))
            if report:
                worst = max(float(v) for v in jax.tree.leaves(norms))
                print(f"step {step + 1} loss {np.mean(losses[-40:]):.4f} largest norm {worst:.3f}", flush=True)
                with open(os.path.join(tmp, "last.msgpack"), "wb") as f:
                    f.write(serialization.to_bytes(jax.device_get(params)))
            times.append(time.perf_counter() - s)
    stop.set()
    worker.join()
    print(f"steps={len(times)} mean_step={np.mean(times):.4f} median_step={np.median(times):.4f} "
          f"wall={time.perf_counter() - t0:.1f} cpu={time.process_time():.1f}")


if __name__ == "__main__":
    main()
