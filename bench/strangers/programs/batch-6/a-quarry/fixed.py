"""Byte-level language model in flax, trained with optax AdamW."""
import argparse
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

VOCAB = 256
DIM = 96
DEPTH = 4
HEADS = 4
SEQ = 96
BATCH = 12


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, mask):
        h = nn.LayerNorm()(x)
        x = x + nn.SelfAttention(num_heads=HEADS)(h, mask=mask)
        h = nn.LayerNorm()(x)
        h = nn.gelu(nn.Dense(DIM * 3)(h))
        return x + nn.Dense(DIM)(h)


class ByteLM(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(VOCAB, DIM, name="tok")(tokens)
        x = x + self.param("pos", nn.initializers.normal(0.02), (SEQ, DIM))
        mask = nn.make_causal_mask(tokens)
        for _ in range(DEPTH):
            x = Block()(x, mask)
        return nn.Dense(VOCAB)(nn.LayerNorm()(x))


def make_corpus(size, seed):
    rng = np.random.default_rng(seed)
    words = [bytes(rng.integers(97, 123, rng.integers(2, 9)).tolist()) for _ in range(400)]
    picks = rng.zipf(1.3, size) % len(words)
    return np.frombuffer(b" ".join(words[i] for i in picks), dtype=np.uint8)


class Windows:
    def __init__(self, corpus, seed):
        self.corpus = corpus
        self.rng = np.random.default_rng(seed)

    def __next__(self):
        starts = self.rng.integers(0, len(self.corpus) - SEQ - 1, BATCH)
        idx = starts[:, None] + np.arange(SEQ + 1)[None]
        rows = self.corpus[idx].astype(np.int32)
        return rows[:, :-1], rows[:, 1:]


def decay_mask(params):
    return jax.tree.map(lambda p: p.ndim > 1, params)


def make_optimizer(total):
    schedule = optax.warmup_cosine_decay_schedule(0.0, 2e-3, 20, total)
    return optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(schedule, b2=0.98, weight_decay=0.05, mask=decay_mask),
    )


def make_loss(model):
    def loss_fn(params, x, y):
        logits = model.apply({"params": params}, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    return loss_fn


def train(args):
    model = ByteLM()
    params = model.init(jax.random.key(0), jnp.zeros((1, SEQ), jnp.int32))["params"]
    tx = make_optimizer(args.steps)
    opt_state = tx.init(params)
    loss_and_grad = jax.value_and_grad(make_loss(model))

    @jax.jit
    def train_step(params, opt_state, x, y):
        loss, grads = loss_and_grad(params, x, y)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    eval_loss = jax.jit(make_loss(model))

    corpus = make_corpus(60000, seed=1)
    train_it = Windows(corpus[:-20000], seed=2)
    held = Windows(corpus[-20000:], seed=3)
    print("parameters", sum(p.size for p in jax.tree.leaves(params)))

    times, losses = [], []
    for step in range(args.steps):
        s = time.perf_counter()
        x, y = next(train_it)
        params, opt_state, loss = train_step(params, opt_state, x, y)
        losses.append(loss)
        if (step + 1) % 40 == 0:
            val = [eval_loss(params, *next(held)) for _ in range(3)]
            print(f"step {step + 1} loss {np.mean([float(v) for v in losses[-40:]]):.3f} "
                  f"val {np.mean([float(v) for v in val]):.3f}", flush=True)
        times.append(time.perf_counter() - s)
    jax.block_until_ready(params)
    return times


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=240)
    args = ap.parse_args()
    t0 = time.perf_counter()
    times = train(args)
    print(f"steps={len(times)} mean_step={np.mean(times):.4f} median_step={np.median(times):.4f} "
          f"wall={time.perf_counter() - t0:.1f} cpu={time.process_time():.1f}")


if __name__ == "__main__":
    main()
