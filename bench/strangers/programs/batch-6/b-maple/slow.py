"""Train a small log-to-summary sequence model and report exact-match while training."""
import argparse
import math
import time
import warnings

T0 = time.perf_counter()

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", message="enable_nested_tensor")

PAD, BOS, EOS = 0, 1, 2
VOCAB = 96
SRC_LEN = 160
TGT_LEN = 24


def make_pairs(count, seed):
    rng = np.random.default_rng(seed)
    src = rng.integers(3, VOCAB, (count, SRC_LEN))
    lengths = rng.integers(SRC_LEN // 2, SRC_LEN, count)
    src[np.arange(SRC_LEN)[None] >= lengths[:, None]] = PAD
    tgt = np.full((count, TGT_LEN), PAD)
    tgt[:, 0] = BOS
    tgt[:, 1:TGT_LEN - 1] = src[:, :TGT_LEN - 2]
    tgt[:, TGT_LEN - 1] = EOS
    return torch.from_numpy(src), torch.from_numpy(tgt)


class Positions(nn.Module):
    def __init__(self, dim, length=512):
        super().__init__()
        pos = torch.arange(length)[:, None]
        div = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        table = torch.zeros(length, dim)
        table[:, 0::2] = torch.sin(pos * div)
        table[:, 1::2] = torch.cos(pos * div)
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.shape[1]]


class Summariser(nn.Module):
    def __init__(self, dim=64, heads=4, layers=2):
        super().__init__()
        self.src_embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.tgt_embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.positions = Positions(dim)
        self.core = nn.Transformer(dim, heads, layers, 1, dim * 4, 0.0, batch_first=True, norm_first=True)
        self.core.encoder.enable_nested_tensor = False
        self.out = nn.Linear(dim, VOCAB)

    def encode(self, src):
        return self.core.encoder(self.positions(self.src_embed(src)), src_key_padding_mask=src == PAD)

    def decode(self, memory, src, tgt):
        n = tgt.shape[1]
        causal = torch.triu(torch.ones(n, n, dtype=torch.bool), 1)
        h = self.core.decoder(self.positions(self.tgt_embed(tgt)), memory, tgt_mask=causal,
                              memory_key_padding_mask=src == PAD)
        return self.out(h)

    def forward(self, src, tgt):
        return self.decode(self.encode(src), src, tgt)


@torch.inference_mode()
def greedy(model, src, length):
    out = torch.full((len(src), 1), BOS)
    done = torch.zeros(len(src), dtype=torch.bool)
    for _ in range(length - 1):
        logits = model(src, out)[:, -1]
        token = logits.argmax(-1).masked_fill(done, PAD)
        out = torch.cat([out, token[:, None]], 1)
        done |= token == EOS
        if bool(done.all()):
            break
    return F.pad(out, (0, length - out.shape[1]), value=PAD)


def evaluate(model, src, tgt, batch=32):
    model.eval()
    exact, tokens = 0, 0.0
    for i in range(0, len(src), batch):
        guess = greedy(model, src[i:i + batch], TGT_LEN)
        truth = tgt[i:i + batch]
        exact += (guess == truth).all(1).sum().item()
        tokens += (guess == truth).float().mean(1).sum().item()
    model.train()
    return exact / len(src), tokens / len(src)


def lr_at(step, base, warm=20):
    return base * min(step / warm, (warm / step) ** 0.5)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=200)
    ap.add_argument("--eval-every", type=int, default=25)
    ap.add_argument("--batch", type=int, default=16)
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train = TensorDataset(*make_pairs(2000, 1))
    loader = DataLoader(train, batch_size=args.batch, shuffle=True, drop_last=True)
    val_src, val_tgt = make_pairs(64, 2)
    model = Summariser()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
    ema = {k: v.detach().clone() for k, v in model.named_parameters()}

    step, train_s, eval_s = 0, 0.0, 0.0
    running = torch.zeros(())
    while step < args.steps:
        for src, tgt in loader:
            start = time.perf_counter()
            step += 1
            for group in opt.param_groups:
                group["lr"] = lr_at(step, 2e-3)
            logits = model(src, tgt[:, :-1])
            loss = F.cross_entropy(logits.reshape(-1, VOCAB), tgt[:, 1:].reshape(-1), ignore_index=PAD)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            with torch.no_grad():
                for name, p in model.named_parameters():
                    ema[name].lerp_(p, 0.02)
                running += loss.detach()
            train_s += time.perf_counter() - start
            if step % args.eval_every == 0:
                start = time.perf_counter()
                exact, token = evaluate(model, val_src, val_tgt)
                eval_s += time.perf_counter() - start
                print(f"step {step} loss {running.item() / args.eval_every:.3f} exact {exact:.3f} token {token:.3f}")
                running.zero_()
            if step >= args.steps:
                break
    print(f"train={train_s:.2f} eval={eval_s:.2f}")
    print(f"steps={step} s_per_step={(train_s + eval_s) / step:.4f} wall={time.perf_counter() - T0:.1f}")


if __name__ == "__main__":
    main()
