"""Denoise small spectrogram patches with a U-shaped network."""
import argparse
import copy
import gc
import json
import os
import tempfile
import threading
import time

T0 = time.perf_counter()

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

BINS, FRAMES = 64, 64


def make_patches(path, count, seed=2):
    rng = np.random.default_rng(seed)
    store = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(count, BINS, FRAMES))
    f = np.arange(BINS)[:, None]
    t = np.arange(FRAMES)[None]
    for i in range(count):
        patch = np.zeros((BINS, FRAMES), np.float32)
        for _ in range(4):
            slope, start, width = rng.uniform(-0.4, 0.4), rng.uniform(0, BINS), rng.uniform(1, 3)
            patch += np.exp(-((f - start - slope * t) / width) ** 2) * rng.uniform(0.5, 1.5)
        store[i] = patch
    store.flush()


class Patches(Dataset):
    def __init__(self, path, noise):
        self.path = path
        self.noise = noise
        self._store = None
        self.count = np.load(path, mmap_mode="r").shape[0]

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if self._store is None:
            self._store = np.load(self.path, mmap_mode="r")
        clean = torch.from_numpy(np.array(self._store[i]))[None]
        return clean + self.noise * torch.randn_like(clean), clean


class Stage(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.a = nn.Conv2d(cin, cout, 3, padding=1)
        self.b = nn.Conv2d(cout, cout, 3, padding=1)
        self.norm = nn.GroupNorm(4, cout)

    def forward(self, x):
        return F.silu(self.norm(self.b(F.silu(self.a(x)))))


class SmallUNet(nn.Module):
    def __init__(self, widths=(16, 32, 48)):
        super().__init__()
        self.down = nn.ModuleList(Stage(a, b) for a, b in zip((1,) + widths[:-1], widths))
        self.up = nn.ModuleList(Stage(a + b, b) for a, b in zip(widths[:0:-1], widths[-2::-1]))
        self.out = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x):
        kept = []
        h = x
        for i, stage in enumerate(self.down):
            h = stage(F.avg_pool2d(h, 2) if i else h)
            kept.append(h)
        kept.pop()
        for stage in self.up:
            h = stage(torch.cat([F.interpolate(h, scale_factor=2.0), kept.pop()], 1))
        return x - self.out(h)


class Pulse(threading.Thread):
    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.quit = threading.Event()

    def run(self):
        while not self.quit.is_set():
            with open(self.path, "w") as f:
                f.write(str(time.time()))
            time.sleep(0.5)


def validate(model, batches):
    model.eval()
    total = 0.0
    with torch.inference_mode():
        for noisy, clean in batches:
            total += F.mse_loss(model(noisy), clean).item()
    model.train()
    return total / len(batches)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--patches", type=int, default=1280)
    ap.add_argument("--batch", type=int, default=32)
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory(prefix="patch_") as folder:
        path = os.path.join(folder, "patches.npy")
        make_patches(path, args.patches)
        loader = DataLoader(Patches(path, 0.3), batch_size=args.batch, shuffle=True, drop_last=True,
                            num_workers=1, persistent_workers=True)
        held = [next(iter(DataLoader(Patches(path, 0.3), batch_size=64))) for _ in range(2)]
        model = SmallUNet()
        average = copy.deepcopy(model).requires_grad_(False)
        opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
        pulse = Pulse(os.path.join(folder, "alive"))
        pulse.start()
        log = open(os.path.join(folder, "train.jsonl"), "a", buffering=1)
        steps, train_s = 0, 0.0
        for epoch in range(args.epochs):
            begin = time.perf_counter()
            for noisy, clean in loader:
                loss = F.l1_loss(model(noisy), clean)
                opt.zero_grad()
                loss.backward()
                norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()
                opt.step()
                steps += 1
                with torch.no_grad():
                    for a, p in zip(average.parameters(), model.parameters()):
                        a.mul_(0.98).add_(p, alpha=0.02)
                log.write(json.dumps({"step": steps, "loss": loss.item(), "norm": norm}) + "\n")
                if steps % 20 == 0:
                    print(f"step {steps} loss {loss.item():.4f}", flush=True)
            train_s += time.perf_counter() - begin
            gc.collect()
            torch.save(copy.deepcopy(average.state_dict()), os.path.join(folder, f"epoch{epoch}.pt"))
            print(f"epoch {epoch} mse {validate(average, held):.4f}")
        pulse.quit.set()
        pulse.join()
        log.close()
    print(f"steps={steps} s_per_step={train_s / steps:.4f} wall={time.perf_counter() - T0:.1f}")


if __name__ == "__main__":
    main()
