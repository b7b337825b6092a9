"""Next-item model over a shop's session log, trained week by week in the order of the log."""
import json
import math
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn

CONFIG = {
    "items": 200_000,
    "dim": 32,
    "context": 8,
    "hidden": 64,
    "batch": 192,
    "negatives": 128,
    "weeks": 5,
    "steps_per_week": 120,
    "lr": 3e-3,
    "beta1": 0.9,
    "beta2": 0.98,
    "clip": 5.0,
    "warmup_steps": 20,
    "log_every": 50,
}


def write_log(folder, cfg, seed=0):
    """One .npy per week; the assortment of a week is a slice of the catalogue and a few evergreens."""
    rng = np.random.default_rng(seed)
    per_week = cfg["items"] // cfg["weeks"]
    rows = cfg["batch"] * cfg["steps_per_week"]
    evergreen = rng.integers(0, cfg["items"], 500)
    paths = []
    for week in range(cfg["weeks"]):
        low = week * per_week
        sessions = low + rng.integers(0, per_week, (rows, cfg["context"] + 1))
        steady = rng.random(sessions.shape) < 0.1
        sessions[steady] = rng.choice(evergreen, int(steady.sum()))
        sessions[:, -1] = (sessions[:, 0] + 1) % cfg["items"]
        path = os.path.join(folder, f"week_{week:02d}.npy")
        np.save(path, sessions.astype(np.int64))
        paths.append(path)
    return paths


class SessionModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.items = nn.Embedding(cfg["items"], cfg["dim"], sparse=True)
        nn.init.normal_(self.items.weight, std=0.05)
        self.position = nn.Parameter(torch.zeros(cfg["context"], cfg["dim"]))
        self.encoder = nn.GRU(cfg["dim"], cfg["hidden"], batch_first=True)
        self.head = nn.Sequential(
            nn.LayerNorm(cfg["hidden"]),
            nn.Linear(cfg["hidden"], cfg["hidden"]),
            nn.GELU(),
            nn.Linear(cfg["hidden"], cfg["dim"]),
        )

    def forward(self, context, target, negatives):
        x = self.items(context) + self.position
        _, last = self.encoder(x)
        query = self.head(last[0])
        good = (query * self.items(target)).sum(-1, keepdim=True)
        bad = query @ self.items(negatives).t()
        return torch.cat([good, bad], dim=1)


def lr_factor(step, total, warmup):
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(1, total - warmup)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * done))


def batches(path, cfg, generator):
    sessions = torch.from_numpy(np.load(path))
    low, high = int(sessions.min()), int(sessions.max()) + 1
    order = torch.randperm(len(sessions), generator=generator)
    for part in order.split(cfg["batch"]):
        rows = sessions[part]
        negatives = torch.randint(low, high, (cfg["negatives"],), generator=generator)
        yield rows[:, :-1], rows[:, -1], negatives


def recall_at(logits, k=10):
    rank = (logits[:, 1:] > logits[:, :1]).sum(1)
    return (rank < k).float().mean().item()


def grad_report(model):
    return {name: round((p.grad.to_dense() if p.grad.is_sparse else p.grad).norm().item(), 5) for name, p in model.named_parameters() if p.grad is not None}


def train(model, paths, cfg):
    rest = [p for p in model.parameters() if p is not model.items.weight]
    optimizer = torch.optim.Adam(rest, lr=cfg["lr"], betas=(cfg["beta1"], cfg["beta2"]), eps=1e-8)
    table = torch.optim.SparseAdam([model.items.weight], lr=cfg["lr"], betas=(cfg["beta1"], cfg["beta2"]), eps=1e-8)
    total = cfg["weeks"] * cfg["steps_per_week"]
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: lr_factor(s, total, cfg["warmup_steps"])
    )
    table_schedule = torch.optim.lr_scheduler.LambdaLR(
        table, lambda s: lr_factor(s, total, cfg["warmup_steps"])
    )
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.02)
    generator = torch.Generator().manual_seed(1)
    step, started, history = 0, None, []
    for week, path in enumerate(paths):
        for context, target, negatives in batches(path, cfg, generator):
            if step == cfg["warmup_steps"]:
                started = time.perf_counter()
            logits = model(context, target, negatives)
            loss = loss_fn(logits, torch.zeros(len(logits), dtype=torch.long))
            optimizer.zero_grad(set_to_none=True)
            table.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(rest, cfg["clip"])
            optimizer.step()
            table.step()
            schedule.step()
            table_schedule.step()
            history.append(loss.item())
            step += 1
            if step % cfg["log_every"] == 0:
                mean = sum(history[-cfg["log_every"]:]) / cfg["log_every"]
                print(f"week {week} step {step} loss {mean:.4f} recall@10 {recall_at(logits.detach()):.3f}")
        report = grad_report(model)
        print(f"week {week} largest gradient: {max(report, key=report.get)}")
    return step - cfg["warmup_steps"], time.perf_counter() - started, history


def main():
    begun = time.perf_counter()
    torch.manual_seed(0)
    torch.set_num_threads(2)
    cfg = dict(CONFIG)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_log(folder, cfg)
        model = SessionModel(cfg)
        print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
        units, seconds, history = train(model, paths, cfg)
        torch.save(model.state_dict(), os.path.join(folder, "model.pt"))
    print(f"final loss {np.mean(history[-50:]):.4f}")
    print(json.dumps({"units": units, "seconds": round(seconds, 4), "wall": round(time.perf_counter() - begun, 3)}))


if __name__ == "__main__":
    main()
