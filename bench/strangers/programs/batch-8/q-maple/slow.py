"""Surrogate of a power grid: injections and topology in, line flows out; fully connected network."""
import argparse
import json
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LINES, LOADS, GENS, SUBS = 186, 99, 54, 118
BATCH = 384


class Grid:
    """Linear flow model with a bounded nonlinearity; stands in for the recorded simulations."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.mix = rng.normal(0, 0.2, size=(LOADS + GENS, LINES))
        self.share = rng.normal(0, 0.4, size=(SUBS, LINES))
        self.load_at = rng.integers(0, SUBS, size=LOADS)
        self.gen_at = rng.integers(0, SUBS, size=GENS)
        self.rng = rng

    def record(self, count):
        hours = self.rng.uniform(0, 24, size=(count, 1))
        loads = 50 + 12 * np.sin(hours / 24 * 2 * np.pi) + self.rng.normal(0, 4, size=(count, LOADS))
        gens = np.abs(self.rng.normal(90, 20, size=(count, GENS)))
        topo = self.rng.random((count, SUBS)) < 0.05
        flow = np.tanh((np.hstack([loads, gens]) / 60) @ self.mix + topo @ self.share) * 400
        return {"load_p": loads, "gen_p": gens, "topo": topo, "flow": flow}


class Scaler:
    def __init__(self, table, names):
        self.mean = {n: table[n].mean(axis=0) for n in names}
        self.std = {n: table[n].std(axis=0) + 1e-6 for n in names}

    def apply(self, name, row):
        return (row - self.mean[name]) / self.std[name]


class Snapshots(Dataset):
    """One observed state of the grid per item, with the balance of every substation added."""

    def __init__(self, table, scaler, grid):
        self.table = table
        self.scaler = scaler
        self.load_at, self.gen_at = grid.load_at, grid.gen_at
        self.rng = np.random.default_rng(17)        # meters are noisy

    def balance(self, loads, gens):
        drawn = np.bincount(self.load_at, weights=loads, minlength=SUBS)
        given = np.bincount(self.gen_at, weights=gens, minlength=SUBS)
        return (given - drawn) / 100.0

    def __len__(self):
        return len(self.table["flow"])

    def __getitem__(self, i):
        loads = self.scaler.apply("load_p", self.table["load_p"][i])
        gens = self.scaler.apply("gen_p", self.table["gen_p"][i])
        topo = self.table["topo"][i].astype(np.float64)
        nodes = self.balance(self.table["load_p"][i], self.table["gen_p"][i])
        loads = loads + self.rng.normal(0, 0.02, size=LOADS)
        gens = gens + self.rng.normal(0, 0.02, size=GENS)
        x = torch.from_numpy(np.concatenate([loads, gens, topo, nodes])).float()
        y = torch.from_numpy(self.scaler.apply("flow", self.table["flow"][i])).float()
        return x, y


class Surrogate(nn.Module):
    def __init__(self, sizes, dropout=0.0):
        super().__init__()
        self.first = nn.Linear(LOADS + GENS + 2 * SUBS, sizes[0])
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:]))
        self.drop = nn.Dropout(dropout)
        self.last = nn.Linear(sizes[-1], LINES)

    def forward(self, x):
        x = self.first(x)
        for layer in self.hidden:
            x = self.drop(torch.relu(layer(x)))
        return self.last(x)


class Tracker:
    """Keeps the losses of an epoch and a smoothed value for the console."""

    def __init__(self):
        self.values, self.smooth = [], None

    def add(self, loss):
        value = loss.item()
        self.values.append(value)
        self.smooth = value if self.smooth is None else 0.95 * self.smooth + 0.05 * value

    def close(self):
        mean = float(np.mean(self.values))
        self.values = []
        return mean


def make_loader(data, shuffle):
    return DataLoader(data, batch_size=BATCH, shuffle=shuffle, drop_last=shuffle)


def fit(model, loader, device, epochs):
    loss_of = nn.MSELoss()
    opt = torch.optim.Adam(model.parameters(), lr=4e-4)
    tracker = Tracker()
    units, began = 0, None
    for epoch in range(epochs):
        if epoch == 1:
            began = time.perf_counter()
        model.train()
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = loss_of(model(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            tracker.add(loss)
            units += epoch >= 1
        print(f"epoch {epoch} loss {tracker.close():.4f} smooth {tracker.smooth:.4f}", flush=True)
    return units, time.perf_counter() - began


@torch.no_grad()
def check(model, loader, device):
    model.eval()
    worst, total, rows = 0.0, 0.0, 0
    for x, y in loader:
        gap = (model(x.to(device)) - y.to(device)).abs()
        worst = max(worst, gap.max().item())
        total += gap.mean(dim=1).sum().item()
        rows += len(x)
    return total / rows, worst


def main():
    start = time.perf_counter()
    args = argparse.ArgumentParser()
    args.add_argument("--epochs", type=int, default=26)
    args = args.parse_args()
    torch.manual_seed(11)
    torch.set_num_threads(1)
    device = torch.device("cpu")
    grid = Grid(seed=5)
    train, test = grid.record(24000), grid.record(3000)
    scaler = Scaler(train, ("load_p", "gen_p", "flow"))
    model = Surrogate((256, 256, 256)).to(device)
    units, seconds = fit(model, make_loader(Snapshots(train, scaler, grid), True), device, args.epochs)
    mae, worst = check(model, make_loader(Snapshots(test, scaler, grid), False), device)
    print(f"test mae {mae:.4f} worst {worst:.2f}")
    print(json.dumps({"units": units, "seconds": round(seconds, 3),
                      "wall": round(time.perf_counter() - start, 3)}))


if __name__ == "__main__":
    main()
