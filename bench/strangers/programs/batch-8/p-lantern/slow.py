"""Fits a forecaster for hourly demand and keeps a csv history of every step."""
import argparse
import csv
import json
import math
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

PAST = 72
AHEAD = 12
QUANTILES = (0.1, 0.5, 0.9)


def make_demand(hours, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    daily = np.sin(2 * np.pi * t / 24) + 0.4 * np.sin(4 * np.pi * t / 24 + 1.0)
    weekly = 0.5 * np.cos(2 * np.pi * t / 168)
    drift = np.cumsum(rng.normal(0, 0.01, hours))
    return (daily + weekly + drift + rng.normal(0, 0.15, hours)).astype(np.float32)


def windows(series):
    view = np.lib.stride_tricks.sliding_window_view(series, PAST + AHEAD)
    block = torch.from_numpy(view.copy())
    return block[:, :PAST], block[:, PAST:]


class Forecaster(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(PAST, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
        )
        self.out = nn.Linear(width, AHEAD * len(QUANTILES))

    def forward(self, past):
        level = past[:, -24:].mean(dim=1, keepdim=True)
        spread = self.out(self.body(past - level)).view(-1, AHEAD, len(QUANTILES))
        return spread + level.unsqueeze(-1)


def pinball(guess, truth):
    gap = truth.unsqueeze(-1) - guess
    levels = torch.tensor(QUANTILES)
    return torch.maximum(levels * gap, (levels - 1) * gap).mean(dim=(0, 1))


class History:
    """Collects rows of named numbers and keeps them in a csv file."""

    def __init__(self, folder, flush_every):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, "metrics.csv")
        self.flush_every = flush_every
        self.rows = []
        self.seen = 0

    def log(self, step, values):
        row = {"step": step}
        row.update(values)
        self.rows.append(row)
        self.seen += 1
        if self.seen % self.flush_every == 0:
            self.save()

    def save(self):
        if not self.rows:
            return
        names = {}
        for row in self.rows:
            names.update(dict.fromkeys(row))
        with open(self.path, "w", newline="") as handle:
            writer = csv.DictWriter(handle, fieldnames=list(names))
            writer.writeheader()
            writer.writerows(self.rows)


class Averages:
    def __init__(self, keep=0.98):
        self.keep = keep
        self.value = None

    def update(self, number):
        self.value = number if self.value is None else self.keep * self.value + (1 - self.keep) * number
        return self.value


@torch.no_grad()
def evaluate(model, past, ahead):
    model.eval()
    per = pinball(model(past), ahead)
    model.train()
    return {f"val_q{int(100 * q)}": value.item() for q, value in zip(QUANTILES, per)}


def main():
    began = time.perf_counter()
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=int, default=40_000)
    parser.add_argument("--epochs", type=int, default=22)
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(2)
    torch.set_num_threads(1)

    past, ahead = windows(make_demand(args.hours, 1))
    val_past, val_ahead = windows(make_demand(3000, 9))
    loader = DataLoader(TensorDataset(past, ahead), batch_size=args.batch, shuffle=True, drop_last=True)
    model = Forecaster()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    total = args.epochs * len(loader)
    plan = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 0.5 * (1 + math.cos(math.pi * s / total)))
    smooth = Averages()

    with tempfile.TemporaryDirectory() as folder:
        history = History(os.path.join(folder, "demand"), flush_every=25)
        step, warm, start = 0, 20, 0.0
        for epoch in range(args.epochs):
            for x, y in loader:
                if step == warm:
                    start = time.perf_counter()
                optimizer.zero_grad()
                per = pinball(model(x), y)
                loss = per.sum()
                loss.backward()
                norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
                plan.step()
                values = {f"train_q{int(100 * q)}": v for q, v in zip(QUANTILES, per.tolist())}
                values["loss"] = loss.item()
                values["smooth"] = smooth.update(values["loss"])
                values["grad_norm"] = norm.item()
                values["lr"] = plan.get_last_lr()[0]
                values["epoch"] = epoch
                if step % len(loader) == 0:
                    values.update(evaluate(model, val_past, val_ahead))
                history.log(step, values)
                step += 1
            print(f"epoch {epoch} loss {smooth.value:.4f}", flush=True)
        history.save()
        seconds = time.perf_counter() - start
        size = os.path.getsize(history.path)
    print(f"history of {size} bytes")
    wall = time.perf_counter() - began
    print(json.dumps({"units": step - warm, "seconds": round(seconds, 3), "wall": round(wall, 3)}))


if __name__ == "__main__":
    main()
