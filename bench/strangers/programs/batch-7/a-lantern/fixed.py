"""Clip tagging: variable-length feature clips from an HDF5 archive, GRU encoder (PyTorch)."""
import json
import os
import tempfile
import time

import h5py
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

SEED = 21
CLIPS = 100000
FRAMES = 12
MELS = 24
TAGS = 20
BATCH = 64
EPOCHS = 4
STEPS_PER_EPOCH = 75
WARMUP = 4


def write_archive(path, rng):
    """One array of clips, padded to FRAMES, plus true lengths and tags."""
    lengths = rng.integers(4, FRAMES + 1, size=CLIPS)
    tags = rng.integers(0, TAGS, size=CLIPS)
    bank = rng.normal(size=(TAGS, MELS)).astype("float32")
    with h5py.File(path, "w") as f:
        clips = f.create_dataset("clips", (CLIPS, FRAMES, MELS), dtype="float32",
                                 chunks=(128, FRAMES, MELS),
                                 compression="gzip", compression_opts=1)
        for lo in range(0, CLIPS, 5120):
            hi = min(lo + 5120, CLIPS)
            block = bank[tags[lo:hi], None, :] + rng.normal(size=(hi - lo, FRAMES, MELS))
            block = np.round(block, 1)
            block *= np.arange(FRAMES)[None, :, None] < lengths[lo:hi, None, None]
            clips[lo:hi] = block.astype("float32")
        f["lengths"] = lengths
        f["tags"] = tags


class ClipArchive(Dataset):
    def __init__(self, path):
        self.path = path
        with h5py.File(path, "r") as f:
            self.lengths = f["lengths"][:]
            self.tags = torch.from_numpy(f["tags"][:])
        self.file = h5py.File(path, "r")
        self.clips = self.file["clips"][:]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        length = int(self.lengths[i])
        clip = self.clips[i, :length]
        return torch.from_numpy(clip), length, self.tags[i]


def collate(items):
    clips, lengths, tags = zip(*items)
    padded = nn.utils.rnn.pad_sequence(clips, batch_first=True)
    return padded, torch.tensor(lengths), torch.stack(tags)


class LengthBuckets(Sampler):
    """Batches of clips with similar length, reshuffled each epoch."""

    def __init__(self, lengths, batch_size, seed, pool=50):
        self.lengths = np.asarray(lengths)
        self.batch_size = batch_size
        self.seed = seed
        self.pool = pool
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def _plan(self):
        rng = np.random.default_rng((self.seed, self.epoch))
        order = rng.permutation(len(self.lengths))
        size = self.batch_size * self.pool
        batches = []
        for lo in range(0, len(order), size):
            part = order[lo:lo + size]
            part = sorted(part.tolist(), key=lambda i: int(self.lengths[i]))
            batches += [part[j:j + self.batch_size]
                        for j in range(0, len(part), self.batch_size)]
        batches = [b for b in batches if len(b) == self.batch_size]
        rng.shuffle(batches)
        return batches

    def __iter__(self):
        return iter(self._plan())

    def __len__(self):
        return len(self.lengths) // self.batch_size


class ClipTagger(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.proj = nn.Linear(MELS, width)
        self.gru = nn.GRU(width, width, num_layers=2, batch_first=True)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, TAGS))

    def forward(self, clips, lengths):
        states, _ = self.gru(F.gelu(self.proj(clips)))
        mask = torch.arange(clips.size(1))[None, :] < lengths[:, None]
        pooled = (states * mask[..., None]).sum(1) / lengths[:, None]
        return self.head(pooled)


def train(model, loader, sampler, warmup=WARMUP):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    seen, start = 0, None
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        total, hits = 0.0, 0
        for i, (clips, lengths, tags) in enumerate(loader):
            if i == STEPS_PER_EPOCH:
                break
            logits = model(clips, lengths)
            loss = F.cross_entropy(logits, tags)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step(epoch + i / len(loader))
            total += loss.item()
            hits += (logits.argmax(-1) == tags).sum().item()
            seen += 1
            if seen == warmup:
                start = time.perf_counter()
        print(f"epoch {epoch}: loss {total / STEPS_PER_EPOCH:.4f} "
              f"acc {hits / (STEPS_PER_EPOCH * BATCH):.3f} lr {scheduler.get_last_lr()[0]:.2e}")
    return seen - warmup, time.perf_counter() - start


def main():
    begin = time.perf_counter()
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "clips.h5")
        write_archive(path, np.random.default_rng(SEED))
        archive = ClipArchive(path)
        sampler = LengthBuckets(archive.lengths, BATCH, SEED)
        loader = DataLoader(archive, batch_sampler=sampler, collate_fn=collate)
        units, seconds = train(ClipTagger(), loader, sampler)
        archive.file.close()
    print(json.dumps({"units": units, "seconds": round(seconds, 3),
                      "wall": round(time.perf_counter() - begin, 3)}))


if __name__ == "__main__":
    main()
