"""Tagger for short product notes: hashed word pieces -> summed vectors -> small head."""
import argparse
import json
import math
import random
import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BUCKETS = 120_000
WIDTH = 64
TAGS = 40
PIECES_PER_NOTE = 24


def make_words(rng, count):
    syllables = ["ka", "lo", "mi", "ter", "un", "os", "pel", "dra", "vin", "cho", "sta", "re"]
    words = set()
    while len(words) < count:
        words.add("".join(rng.choice(syllables) for _ in range(rng.randint(2, 5))))
    return sorted(words)


def bucket_of(piece):
    return zlib.crc32(piece.encode()) % BUCKETS


def make_notes(count, seed):
    rng = random.Random(seed)
    words = make_words(rng, 6000)
    themes = [rng.sample(words, 150) for _ in range(TAGS)]
    cache = {}
    pieces = np.zeros((count, PIECES_PER_NOTE), dtype=np.int64)
    tags = np.zeros(count, dtype=np.int64)
    for row in range(count):
        tag = rng.randrange(TAGS)
        tags[row] = tag
        for col in range(PIECES_PER_NOTE):
            source = themes[tag] if rng.random() < 0.5 else words
            word = rng.choice(source)
            if word not in cache:
                cache[word] = bucket_of(word)
            pieces[row, col] = cache[word]
    return torch.from_numpy(pieces), torch.from_numpy(tags)


class Notes(Dataset):
    def __init__(self, pieces, tags):
        self.pieces = pieces
        self.tags = tags

    def __len__(self):
        return len(self.tags)

    def __getitem__(self, index):
        return self.pieces[index], self.tags[index]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(BUCKETS, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Sequential(
            nn.Linear(WIDTH, 384),
            nn.GELU(),
            nn.Dropout(0.1),
            nn.Linear(384, TAGS),
        )

    def forward(self, pieces):
        vectors = self.table(pieces).mean(dim=1)
        return self.head(self.norm(vectors))


def rate_at(step, total, top):
    warm = 40
    if step < warm:
        return top * (step + 1) / warm
    share = (step - warm) / max(1, total - warm)
    return 0.5 * top * (1 + math.cos(math.pi * share))


def set_rate(optimizer, value):
    for group in optimizer.param_groups:
        group["lr"] = value


class Running:
    def __init__(self):
        self.values = []

    def add(self, value):
        self.values.append(value)

    def last(self, count):
        tail = self.values[-count:]
        return sum(tail) / max(1, len(tail))


class Fit:
    def __init__(self, model, total, top_rate):
        self.model = model
        self.total = total
        self.top_rate = top_rate
        self.optimizer = torch.optim.SGD(model.parameters(), lr=top_rate)
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
        self.losses = Running()

    def step(self, index, pieces, tags):
        set_rate(self.optimizer, rate_at(index, self.total, self.top_rate))
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.criterion(self.model(pieces), tags)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.head.parameters(), 1.0)
        self.optimizer.step()
        self.losses.add(loss.item())


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = total = 0
    for pieces, tags in loader:
        right += (model(pieces).argmax(1) == tags).sum().item()
        total += len(tags)
    model.train()
    return right / total


def forever(loader):
    while True:
        yield from loader


def main():
    began = time.perf_counter()
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(3)
    torch.set_num_threads(1)

    train = DataLoader(Notes(*make_notes(12000, 1)), batch_size=args.batch, shuffle=True, drop_last=True)
    check = DataLoader(Notes(*make_notes(1500, 1)), batch_size=256)
    model = Tagger()
    fit = Fit(model, args.steps, 0.8)
    batches = forever(train)

    warm = 10
    start = 0.0
    for index in range(args.steps):
        if index == warm:
            start = time.perf_counter()
        pieces, tags = next(batches)
        fit.step(index, pieces, tags)
        if index % 500 == 499:
            print(f"step {index + 1} loss {fit.losses.last(500):.4f}", flush=True)
    seconds = time.perf_counter() - start
    print(f"held-out accuracy {accuracy(model, check):.3f}")
    wall = time.perf_counter() - began
    print(json.dumps({"units": args.steps - warm, "seconds": round(seconds, 3), "wall": round(wall, 3)}))


if __name__ == "__main__":
    main()
