"""Classify machine vibration windows recorded from a pump bench."""
import argparse
import os
import shutil
import tempfile
import time

T0 = time.perf_counter()

import h5py
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CHANNELS = 6
LENGTH = 1024
CLASSES = 5


def record_bench(path, count, seed=3):
    rng = np.random.default_rng(seed)
    t = np.arange(LENGTH, dtype=np.float32) / LENGTH
    with h5py.File(path, "w") as f:
        windows = f.create_dataset(
            "windows",
            shape=(count, CHANNELS, LENGTH),
            dtype="f4",
            chunks=(1, CHANNELS, LENGTH),
            compression="gzip",
            compression_opts=1,
            shuffle=True,
        )
        labels = f.create_dataset("labels", shape=(count,), dtype="i8")
        for start in range(0, count, 64):
            n = min(64, count - start)
            y = rng.integers(0, CLASSES, n)
            freq = 6.0 + 5.0 * y[:, None, None] + rng.normal(0, 0.4, (n, CHANNELS, 1))
            phase = rng.uniform(0, 2 * np.pi, (n, CHANNELS, 1))
            wave = np.sin(2 * np.pi * freq * t + phase)
            wave = wave + 0.6 * rng.standard_normal(wave.shape)
            windows[start:start + n] = np.round(wave, 2).astype(np.float32)
            labels[start:start + n] = y
        f.attrs["mean"] = 0.0
        f.attrs["std"] = 0.93


class PumpWindows(Dataset):
    def __init__(self, path, indices, augment):
        self.path = path
        self.indices = np.asarray(indices)
        self.augment = augment
        self._file = None
        with h5py.File(path, "r") as f:
            self.labels = f["labels"][:]
            self.mean = float(f.attrs["mean"])
            self.std = float(f.attrs["std"])

    def _open(self):
        if self._file is None:
            self._file = h5py.File(self.path, "r")
        return self._file["windows"]

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, i):
        row = int(self.indices[i])
        x = self._open()[row]
        x = (x - self.mean) / self.std
        if self.augment:
            x = np.roll(x, np.random.randint(LENGTH), axis=-1)
            x = x * np.random.uniform(0.8, 1.2)
        return torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32)), int(self.labels[row])


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(cin, cout, 7, stride=stride, padding=3, bias=False),
            nn.BatchNorm1d(cout),
            nn.ReLU(inplace=True),
            nn.Conv1d(cout, cout, 5, padding=2, bias=False),
            nn.BatchNorm1d(cout),
        )
        self.skip = nn.Conv1d(cin, cout, 1, stride=stride)

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


def make_model():
    return nn.Sequential(
        Block(CHANNELS, 16, 4),
        Block(16, 32, 2),
        Block(32, 64, 2),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(64, CLASSES),
    )


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = total = 0
    for x, y in loader:
        right += (model(x).argmax(1) == y).sum().item()
        total += len(y)
    model.train()
    return right / total


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--windows", type=int, default=1248)
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--batch", type=int, default=32)
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder = tempfile.mkdtemp(prefix="pump_")
    path = os.path.join(folder, "bench.h5")
    record_bench(path, args.windows)

    order = np.random.default_rng(0).permutation(args.windows)
    held = 96
    train = DataLoader(PumpWindows(path, order[held:], True), batch_size=args.batch, shuffle=True,
                       num_workers=1, persistent_workers=True, prefetch_factor=4, drop_last=True)
    valid = DataLoader(PumpWindows(path, np.sort(order[:held]), False), batch_size=48)

    model = make_model()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 4e-3, total_steps=args.epochs * len(train))
    lossf = nn.CrossEntropyLoss(label_smoothing=0.05)

    steps, seen, train_s = 0, 0, 0.0
    for epoch in range(args.epochs):
        start = time.perf_counter()
        for x, y in train:
            opt.zero_grad(set_to_none=True)
            loss = lossf(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            sched.step()
            steps += 1
            seen += len(y)
            if steps % 10 == 0:
                print(f"step {steps} loss {loss.item():.4f} lr {sched.get_last_lr()[0]:.2e}")
        train_s += time.perf_counter() - start
        print(f"epoch {epoch} accuracy {evaluate(model, valid):.3f}")
    shutil.rmtree(folder)
    print(f"steps={steps} s_per_step={train_s / steps:.4f} wall={time.perf_counter() - T0:.1f}")


if __name__ == "__main__":
    main()
