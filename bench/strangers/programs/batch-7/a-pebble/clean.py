"""Character language model with a small transformer (PyTorch)."""
import copy
import json
import logging
import math
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SEED = 13
VOCAB = 64
CONTEXT = 96
WIDTH = 256
HEADS = 4
DEPTH = 3
BATCH = 24
STEPS = 100
WARMUP = 4
EVAL_EVERY = 50

log = logging.getLogger("pebble")


def make_corpus(n, rng):
    """A second-order Markov text, kept as one uint8 array."""
    table = rng.integers(0, VOCAB, size=(VOCAB, VOCAB, 3))
    text = np.zeros(n, dtype="uint8")
    picks = rng.integers(0, 3, size=n)
    noise = rng.random(n) < 0.05
    stray = rng.integers(0, VOCAB, size=n)
    for i in range(2, n):
        text[i] = stray[i] if noise[i] else table[text[i - 2], text[i - 1], picks[i]]
    return torch.from_numpy(text)


def sample_batch(corpus, generator):
    starts = torch.randint(len(corpus) - CONTEXT - 1, (BATCH,), generator=generator)
    rows = torch.stack([corpus[s:s + CONTEXT + 1] for s in starts.tolist()]).long()
    return rows[:, :-1], rows[:, 1:]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, c = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.chars = nn.Embedding(VOCAB, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block(WIDTH, HEADS) for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)
        self.head.weight = self.chars.weight
        nn.init.normal_(self.chars.weight, std=0.02)

    def forward(self, ids):
        x = self.chars(ids) + self.places(torch.arange(ids.size(1)))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def rate(step, peak=1e-3, ramp=20):
    if step < ramp:
        return peak * (step + 1) / ramp
    left = (step - ramp) / max(1, STEPS + WARMUP - ramp)
    return peak * (0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, left))))


@torch.no_grad()
def evaluate(model, corpus, generator, rounds=2):
    model.eval()
    losses = []
    for _ in range(rounds):
        x, y = sample_batch(corpus, generator)
        losses.append(F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item())
    model.train()
    return sum(losses) / len(losses)


def train_step(model, optimizer, x, y, lr):
    for group in optimizer.param_groups:
        group["lr"] = lr
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item(), norm.item()


def main():
    begin = time.perf_counter()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    corpus = make_corpus(300_000, np.random.default_rng(SEED))
    held_out, corpus = corpus[:20_000], corpus[20_000:]
    generator = torch.Generator().manual_seed(SEED)

    model = CharModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
    best, best_state = float("inf"), None
    window = []
    for step in range(STEPS + WARMUP):
        if step == WARMUP:
            start = time.perf_counter()
        x, y = sample_batch(corpus, generator)
        loss, norm = train_step(model, optimizer, x, y, rate(step))
        assert all(torch.isfinite(p).all() for p in model.norm.parameters())
        window = (window + [loss])[-50:]
        log.debug("step %d loss %.4f norm %.3f", step, loss, norm)
        if (step + 1) % EVAL_EVERY == 0:
            held = evaluate(model, held_out, generator)
            log.info("step %d: train %.3f held-out %.3f", step + 1, np.mean(window), held)
            if held < best:
                best, best_state = held, copy.deepcopy(model.state_dict())
    seconds = time.perf_counter() - start

    with tempfile.TemporaryDirectory() as folder:
        torch.save(best_state, os.path.join(folder, "best.pt"))
    print(json.dumps({"units": STEPS, "seconds": round(seconds, 3),
                      "wall": round(time.perf_counter() - begin, 3)}))


if __name__ == "__main__":
    main()
