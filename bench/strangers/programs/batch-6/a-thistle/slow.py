"""Autoencoder on multichannel spectrogram patches in JAX, with a metric writer and checkpoints."""
import argparse
import collections
import json
import os
import pathlib
import queue
import tempfile
import threading
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state
from flax.traverse_util import flatten_dict

FEATURES = 1024
HIDDEN = 896
LATENT = 96
BATCH = 256
KEEP = 2


class Autoencoder(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.relu(nn.LayerNorm()(nn.Dense(HIDDEN)(x)))
        h = nn.relu(nn.Dense(HIDDEN // 2)(h))
        z = nn.Dense(LATENT)(h)
        h = nn.relu(nn.Dense(HIDDEN // 2)(z))
        h = nn.relu(nn.LayerNorm()(nn.Dense(HIDDEN)(h)))
        return nn.Dense(FEATURES)(h), z


class MetricWriter:
    """Takes records from the training loop and appends them to a jsonl file in the background."""

    def __init__(self, path):
        self.records = queue.Queue()
        self.closing = False
        self.path = path
        self.thread = threading.Thread(target=self._drain, name="metric-writer", daemon=True)
        self.thread.start()

    def put(self, step, **values):
        self.records.put({"step": step, "time": time.time(), **values})

    def _drain(self):
        with open(self.path, "a") as out:
            while True:
                try:
                    rec = self.records.get_nowait()
                except queue.Empty:
                    if self.closing:
                        return
                    continue
                out.write(json.dumps(rec) + "\n")

    def close(self):
        self.closing = True
        self.thread.join()


class Checkpoints:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.kept = collections.deque()

    def save(self, state):
        step = int(state.step)
        tree = {"params": state.params, "mu": state.opt_state[0].mu, "nu": state.opt_state[0].nu}
        flat = {"/".join(k): np.asarray(v) for k, v in flatten_dict(jax.device_get(tree)).items()}
        path = self.root / f"ckpt_{step:06d}.npz"
        tmp = path.with_suffix(".tmp")
        with open(tmp, "wb") as out:
            np.savez_compressed(out, **flat)
        os.replace(tmp, path)
        self.kept.append(path)
        while len(self.kept) > KEEP:
            self.kept.popleft().unlink()


def make_patches(n, seed):
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(40, FEATURES)).astype(np.float32)
    codes = rng.normal(size=(n, 40)).astype(np.float32)
    return (codes @ basis / 6.0 + 0.1 * rng.normal(size=(n, FEATURES))).astype(np.float32)


@jax.jit
def train_step(state, x, key):
    noise = 0.05 * jax.random.normal(key, x.shape)

    def loss_fn(params):
        recon, z = state.apply_fn({"params": params}, x + noise)
        return jnp.mean((recon - x) ** 2) + 1e-4 * jnp.mean(z ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss, optax.global_norm(grads)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=320)
    ap.add_argument("--save-every", type=int, default=40)
    args = ap.parse_args()
    t0 = time.perf_counter()
    data = make_patches(BATCH * 24, seed=1)
    model = Autoencoder()
    params = model.init(jax.random.key(0), jnp.zeros((1, FEATURES)))["params"]
    state = train_state.TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))
    key = jax.random.key(7)
    rng = np.random.default_rng(9)
    times = []
    with tempfile.TemporaryDirectory() as tmp:
        writer = MetricWriter(os.path.join(tmp, "metrics.jsonl"))
        ckpts = Checkpoints(tmp)
        for step in range(args.steps):
            s = time.perf_counter()
            x = data[rng.integers(0, len(data), BATCH)]
            state, loss, norm = train_step(state, x, jax.random.fold_in(key, step))
            writer.put(step, loss=float(loss), grad_norm=float(norm))
            if (step + 1) % args.save_every == 0:
                ckpts.save(state)
                print(f"step {step + 1} loss {float(loss):.4f}", flush=True)
            times.append(time.perf_counter() - s)
        writer.close()
        lines = sum(1 for _ in open(os.path.join(tmp, "metrics.jsonl")))
    print(f"records={lines}")
    print(f"steps={len(times)} mean_step={np.mean(times):.4f} median_step={np.median(times):.4f} "
          f"wall={time.perf_counter() - t0:.1f} cpu={time.process_time():.1f}")


if __name__ == "__main__":
    main()
