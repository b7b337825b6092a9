"""Character model of telemetry messages: a small causal transformer, trained from token arrays in memory."""
import copy
import gc
import json
import math
import os
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {
    "vocab": 96,
    "length": 128,
    "dim": 128,
    "heads": 4,
    "layers": 3,
    "batch": 16,
    "steps": 270,
    "warmup": 10,
    "lr": 2e-3,
    "eval_every": 90,
    "log_every": 30,
    "ema": 0.98,
}


def make_text(cfg, size=400_000, seed=0):
    rng = np.random.default_rng(seed)
    phrases = [rng.integers(0, cfg["vocab"], rng.integers(4, 16)) for _ in range(200)]
    picks = rng.zipf(1.4, size // 6) % len(phrases)
    text = np.concatenate([phrases[i] for i in picks])[:size]
    return torch.from_numpy(text.astype(np.int64))


class Windows:
    """Random windows of the text, a whole batch with one gather."""

    def __init__(self, text, length, batch, seed):
        self.text, self.batch = text, batch
        self.span = torch.arange(length + 1)
        self.high = len(text) - length - 1
        self.generator = torch.Generator().manual_seed(seed)

    def next(self):
        starts = torch.randint(0, self.high, (self.batch, 1), generator=self.generator)
        rows = self.text[starts + self.span]
        return rows[:, :-1], rows[:, 1:]


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tokens = nn.Embedding(cfg["vocab"], cfg["dim"])
        self.places = nn.Parameter(torch.zeros(cfg["length"], cfg["dim"]))
        self.blocks = nn.ModuleList(Block(cfg["dim"], cfg["heads"]) for _ in range(cfg["layers"]))
        self.norm = nn.LayerNorm(cfg["dim"])
        self.head = nn.Linear(cfg["dim"], cfg["vocab"], bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.places[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss_of(model, ids, targets):
    return F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())


@torch.no_grad()
def update_average(average, model, decay):
    mine, theirs = list(average.parameters()), list(model.parameters())
    torch._foreach_lerp_(mine, theirs, 1 - decay)


@torch.no_grad()
def evaluate(model, windows, batches=4):
    model.eval()
    total = sum(loss_of(model, *windows.next()).item() for _ in range(batches))
    model.train()
    return total / batches


def rate(step, cfg):
    if step < cfg["warmup"]:
        return cfg["lr"] * (step + 1) / cfg["warmup"]
    done = (step - cfg["warmup"]) / (cfg["steps"] - cfg["warmup"])
    return cfg["lr"] * (0.1 + 0.45 * (1 + math.cos(math.pi * done)))


def train(model, text, cfg, folder):
    cut = int(0.9 * len(text))
    windows = Windows(text[:cut], cfg["length"], cfg["batch"], seed=1)
    held_out = Windows(text[cut:], cfg["length"], cfg["batch"], seed=2)
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], betas=(0.9, 0.95), weight_decay=0.05)
    losses, started = [], None
    with open(os.path.join(folder, "log.jsonl"), "w", buffering=1) as log:
        for step in range(cfg["steps"]):
            if step == cfg["warmup"]:
                gc.collect()
                started = time.perf_counter()
            for group in optimizer.param_groups:
                group["lr"] = rate(step, cfg)
            ids, targets = windows.next()
            loss = loss_of(model, ids, targets)
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            update_average(average, model, cfg["ema"])
            losses.append(loss.item())
            log.write(json.dumps({"step": step, "loss": losses[-1], "norm": norm.item()}) + "\n")
            if (step + 1) % cfg["log_every"] == 0:
                print(f"step {step + 1} loss {np.mean(losses[-cfg['log_every']:]):.4f}", flush=True)
            if (step + 1) % cfg["eval_every"] == 0:
                print(f"held out {evaluate(average, held_out):.4f}")
                torch.save(average.state_dict(), os.path.join(folder, f"average_{step + 1}.pt"))
    return cfg["steps"] - cfg["warmup"], time.perf_counter() - started


def main():
    begun = time.perf_counter()
    torch.manual_seed(0)
    torch.set_num_threads(2)
    cfg = dict(CONFIG)
    model = Model(cfg)
    with tempfile.TemporaryDirectory() as folder:
        units, seconds = train(model, make_text(cfg), cfg, folder)
    print(json.dumps({"units": units, "seconds": round(seconds, 4), "wall": round(time.perf_counter() - begun, 3)}))


if __name__ == "__main__":
    main()
