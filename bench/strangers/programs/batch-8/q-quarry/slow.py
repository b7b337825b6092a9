"""Organ segmentation on CT volumes: random patches from a folder of annotated scans, small 3D U-Net."""
import argparse
import gzip
import json
import pathlib
import struct
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SHAPE = (96, 160, 160)
PATCH = (8, 64, 64)
CLASSES = 4
HEADER = struct.Struct("<3q")


def write_scan(path, volume):
    with gzip.open(path, "wb", compresslevel=3) as out:
        out.write(HEADER.pack(*volume.shape))
        out.write(np.ascontiguousarray(volume, dtype="<f8").tobytes())


class Scan:
    """Window reader for one scan file: header, then float64 planes from bottom to top."""

    def __init__(self, path):
        self.path = path
        with gzip.open(path, "rb") as handle:
            self.shape = HEADER.unpack(handle.read(HEADER.size))

    def window(self, box):
        plane = self.shape[1] * self.shape[2] * 8
        depth = box[0].stop - box[0].start
        with gzip.open(self.path, "rb") as handle:
            handle.seek(HEADER.size + box[0].start * plane)
            slab = np.frombuffer(handle.read(depth * plane), dtype="<f8")
        return slab.reshape(depth, *self.shape[1:])[:, box[1], box[2]]


def make_study(folder, count, seed):
    """Bodies with three round organs; Hounsfield-like whole numbers, organ ids as annotation."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, n) for n in SHAPE], indexing="ij"))
    for k in range(count):
        body = (grid[1] ** 2 / 0.8 + grid[2] ** 2 / 0.6) < 1
        image = np.where(body, 40.0, -1000.0)
        label = np.zeros(SHAPE)
        for organ in range(1, CLASSES):
            center = rng.uniform(-0.4, 0.4, size=3).reshape(3, 1, 1, 1)
            inside = (((grid - center) / rng.uniform(0.2, 0.5, size=(3, 1, 1, 1))) ** 2).sum(0) < 1
            image[inside] = 40 + 45 * organ
            label[inside] = organ
        image += np.rint(rng.normal(0, 9, size=SHAPE))
        write_scan(folder / f"case_{k:02d}_image.gz", image)
        write_scan(folder / f"case_{k:02d}_rater.gz", label)


class Patches(Dataset):
    def __init__(self, folder, length, seed):
        self.images = [Scan(p) for p in sorted(folder.glob("*_image.gz"))]
        self.labels = [Scan(p) for p in sorted(folder.glob("*_rater.gz"))]
        self.length = length
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return self.length

    def draw_box(self, shape):
        corner = [int(self.rng.integers(0, s - p + 1)) for s, p in zip(shape, PATCH)]
        return tuple(slice(c, c + p) for c, p in zip(corner, PATCH))

    def __getitem__(self, i):
        k = i % len(self.images)
        box = self.draw_box(self.images[k].shape)
        image = self.images[k].window(box)
        label = self.labels[k].window(box)
        if self.rng.random() < 0.5:
            image, label = image[:, :, ::-1], label[:, :, ::-1]
        image = np.clip(image, -200, 300) / 250.0
        return (torch.from_numpy(np.ascontiguousarray(image, dtype=np.float32))[None],
                torch.from_numpy(np.ascontiguousarray(label, dtype=np.int64)))


def double(cin, cout):
    return nn.Sequential(nn.Conv3d(cin, cout, 3, padding=1), nn.GroupNorm(4, cout), nn.ReLU(),
                         nn.Conv3d(cout, cout, 3, padding=1), nn.GroupNorm(4, cout), nn.ReLU())


class SmallUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.top = double(1, width)
        self.low = double(width, 2 * width)
        self.merge = double(3 * width, width)
        self.out = nn.Conv3d(width, CLASSES, 1)

    def forward(self, x):
        top = self.top(x)
        low = self.low(F.max_pool3d(top, (1, 2, 2)))
        low = F.interpolate(low, scale_factor=(1, 2, 2))
        return self.out(self.merge(torch.cat([top, low], dim=1)))


def dice_loss(logits, label):
    prob = logits.softmax(dim=1)
    want = F.one_hot(label, CLASSES).permute(0, 4, 1, 2, 3).float()
    both = (prob * want).sum(dim=(0, 2, 3, 4))
    return 1 - ((2 * both + 1) / (prob.sum(dim=(0, 2, 3, 4)) + want.sum(dim=(0, 2, 3, 4)) + 1)).mean()


def train(model, loader, warm):
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model.train()
    units, began, trace = 0, None, []
    for step, (image, label) in enumerate(loader):
        if step == warm:
            began = time.perf_counter()
        logits = model(image)
        loss = dice_loss(logits, label) + F.cross_entropy(logits, label)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        trace.append(loss.item())
        units += step >= warm
        if step % 20 == 0:
            print(f"step {step} loss {np.mean(trace[-20:]):.4f}", flush=True)
    return units, time.perf_counter() - began


def main():
    start = time.perf_counter()
    args = argparse.ArgumentParser()
    args.add_argument("--steps", type=int, default=150)
    args.add_argument("--batch", type=int, default=2)
    args = args.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as temp:
        folder = pathlib.Path(temp)
        make_study(folder, count=6, seed=9)
        data = Patches(folder, args.steps * args.batch, seed=4)
        units, seconds = train(SmallUNet(), DataLoader(data, batch_size=args.batch), warm=5)
    print(json.dumps({"units": units, "seconds": round(seconds, 3),
                      "wall": round(time.perf_counter() - start, 3)}))


if __name__ == "__main__":
    main()
