"""Short fine-tuning of a small causal language model, then perplexity on held-out documents."""
import argparse
import json
import math
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Settings:
    vocab = 1800
    width = 128
    heads = 4
    depth = 40
    context = 256
    batch = 4
    keep_states = True          # lets the same checkpoint answer prompts token by token
    dropout = 0.0


def rotary_tables(context, head_dim):
    freq = 1.0 / (10000 ** (torch.arange(0, head_dim, 2).float() / head_dim))
    angle = torch.outer(torch.arange(context).float(), freq)
    return angle.cos(), angle.sin()


def rotate(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.keep_states = cfg.keep_states
        self.norm_a = nn.LayerNorm(cfg.width)
        self.norm_b = nn.LayerNorm(cfg.width)
        self.qkv = nn.Linear(cfg.width, 3 * cfg.width, bias=False)
        self.out = nn.Linear(cfg.width, cfg.width, bias=False)
        self.up = nn.Linear(cfg.width, 4 * cfg.width)
        self.down = nn.Linear(4 * cfg.width, cfg.width)
        self.p = cfg.dropout

    def forward(self, h, cos, sin):
        b, n, w = h.shape
        q, k, v = self.qkv(self.norm_a(h)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        state = None
        if self.keep_states and not self.training:
            state = torch.stack((k, v), dim=0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + F.dropout(self.out(mixed.transpose(1, 2).reshape(b, n, w)), self.p, self.training)
        h = h + F.dropout(self.down(F.gelu(self.up(self.norm_b(h)))), self.p, self.training)
        return h, state


class Writer(nn.Module):
    """Decoder whose blocks hand one dict from stage to stage, so that it can be cut into stages."""

    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab, cfg.width)
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.depth))
        self.norm = nn.LayerNorm(cfg.width)
        self.head = nn.Linear(cfg.width, cfg.vocab, bias=False)
        cos, sin = rotary_tables(cfg.context, cfg.width // cfg.heads)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def set_keep_states(self, flag):
        for block in self.blocks:
            block.keep_states = flag

    def forward(self, ids):
        n = ids.shape[1]
        carry = {"hidden": self.embed(ids), "states": None}
        for block in self.blocks:
            carry["hidden"], state = block(carry["hidden"], self.cos[:n], self.sin[:n])
            if state is not None:
                state = state.unsqueeze(0)
                if carry["states"] is None:
                    carry["states"] = state
                else:
                    carry["states"] = torch.cat([carry["states"], state], dim=0)
        return {"logits": self.head(self.norm(carry["hidden"])), "states": carry["states"]}


class Documents:
    """Token streams with a simple bigram habit; the last token of a row may be padding (-100)."""

    def __init__(self, cfg, count, seed):
        rng = np.random.default_rng(seed)
        nxt = rng.integers(2, cfg.vocab, size=(cfg.vocab, 4))
        rows = np.empty((count, cfg.context + 1), dtype=np.int64)
        rows[:, 0] = rng.integers(2, cfg.vocab, size=count)
        for t in range(cfg.context):
            rows[:, t + 1] = nxt[rows[:, t], rng.integers(0, 4, size=count)]
        self.rows = rows
        self.lengths = rng.integers(cfg.context * 3 // 4, cfg.context + 1, size=count)

    def batches(self, size):
        for start in range(0, len(self.rows) - size + 1, size):
            rows = torch.from_numpy(self.rows[start:start + size].copy())
            labels = rows[:, 1:].clone()
            for i, length in enumerate(self.lengths[start:start + size]):
                labels[i, length:] = -100
            yield rows[:, :-1], labels


def token_loss(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")


def fine_tune(model, docs, cfg, steps):
    model.train()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step, (ids, labels) in enumerate(docs.batches(cfg.batch)):
        if step == steps:
            break
        loss = token_loss(model(ids)["logits"], labels) / (labels != -100).sum()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 4 == 0:
            print(f"tune {step} loss {loss.item():.3f}", flush=True)


@torch.no_grad()
def perplexity(model, docs, cfg, warm):
    model.eval()
    total, tokens, units, began = 0.0, 0, 0, None
    per_doc = []
    for step, (ids, labels) in enumerate(docs.batches(cfg.batch)):
        if step == warm:
            began = time.perf_counter()
        result = model(ids)
        loss = token_loss(result["logits"], labels)
        count = int((labels != -100).sum())
        total += loss.item()
        tokens += count
        per_doc.append(math.exp(min(loss.item() / count, 20.0)))
        units += step >= warm
        if step % 20 == 0:
            print(f"eval {step} running ppl {math.exp(total / tokens):.1f}", flush=True)
    seconds = time.perf_counter() - began
    print(f"ppl {math.exp(total / tokens):.2f} worst batch {max(per_doc):.1f}")
    return units, seconds


def main():
    start = time.perf_counter()
    args = argparse.ArgumentParser()
    args.add_argument("--steps", type=int, default=66)
    args = args.parse_args()
    torch.manual_seed(3)
    cfg = Settings()
    model = Writer(cfg)
    fine_tune(model, Documents(cfg, 8 * cfg.batch, seed=1), cfg, steps=6)
    held_out = Documents(cfg, args.steps * cfg.batch, seed=2)
    units, seconds = perplexity(model, held_out, cfg, warm=4)
    print(json.dumps({"units": units, "seconds": round(seconds, 3),
                      "wall": round(time.perf_counter() - start, 3)}))


if __name__ == "__main__":
    main()
