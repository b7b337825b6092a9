"""Sequence tagging of sensor channels with a constrained recurrent network (PyTorch)."""
import json
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations
from torch.utils.data import DataLoader, TensorDataset

SEED = 3
CHANNELS = 12
HIDDEN = 128
STATES = 6
LENGTH = 24
BATCH = 64
TRAIN_STEPS = 300
WARMUP = 4


def make_recordings(n, rng):
    """Noisy oscillators; the tag of a moment is the quadrant of a hidden phase."""
    speed = rng.uniform(0.05, 0.6, size=(n, 1))
    phase = rng.uniform(0, 2 * np.pi, size=(n, 1)) + speed * np.arange(LENGTH)
    mix = rng.normal(size=(2, CHANNELS))
    base = np.stack([np.cos(phase), np.sin(phase)], axis=-1) @ mix
    signal = base + 0.4 * rng.normal(size=base.shape)
    tags = ((phase % (2 * np.pi)) / (2 * np.pi) * STATES).astype("int64")
    return torch.from_numpy(signal.astype("float32")), torch.from_numpy(tags)


class ModReLU(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(size).uniform_(-0.01, 0.01))

    def forward(self, x):
        return torch.sign(x) * F.relu(x.abs() + self.bias)


class OrthogonalCell(nn.Module):
    """Recurrent cell whose transition matrix stays on the orthogonal group."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.inputs = nn.Linear(inputs, hidden)
        self.transition = nn.Linear(hidden, hidden, bias=False)
        nn.init.orthogonal_(self.transition.weight)
        parametrizations.orthogonal(self.transition, orthogonal_map="cayley")
        self.act = ModReLU(hidden)

    def forward(self, projected, state):
        return self.act(projected + self.transition(state))


class Tagger(nn.Module):
    def __init__(self, inputs, hidden, states):
        super().__init__()
        self.hidden = hidden
        self.stem = nn.Conv1d(inputs, 64, 5, padding=2)
        self.cell = OrthogonalCell(64, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.mix = nn.Sequential(
            nn.Linear(hidden, 512), nn.GELU(), nn.Dropout(0.1), nn.Linear(512, hidden),
        )
        self.head = nn.Linear(hidden, states)

    def unroll(self, projected):
        state = projected.new_zeros(projected.size(0), self.hidden)
        outputs = []
        for moment in projected.unbind(dim=1):
            state = self.cell(moment, state)
            outputs.append(state)
        return torch.stack(outputs, dim=1)

    def forward(self, x):
        x = F.gelu(self.stem(x.transpose(1, 2))).transpose(1, 2)
        projected = self.cell.inputs(x)
        states = self.norm(self.unroll(projected))
        return self.head(states + self.mix(states))


def forever(loader):
    while True:
        yield from loader


@torch.no_grad()
def accuracy(model, signal, tags):
    model.eval()
    hits = (model(signal).argmax(-1) == tags).float().mean().item()
    model.train()
    return hits


def train_step(model, optimizer, signal, tags):
    logits = model(signal)
    loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item(), norm.item()


def parameter_groups(model):
    decay, plain = [], []
    for _, p in model.named_parameters():
        (decay if p.ndim > 1 else plain).append(p)
    return [{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]


def main():
    begin = time.perf_counter()
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    rng = np.random.default_rng(SEED)
    signal, tags = make_recordings(4096, rng)
    loader = DataLoader(TensorDataset(signal[512:], tags[512:]), batch_size=BATCH,
                        shuffle=True, drop_last=True)

    model = Tagger(CHANNELS, HIDDEN, STATES)
    optimizer = torch.optim.AdamW(parameter_groups(model), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=4e-3, total_steps=TRAIN_STEPS + WARMUP)

    start = None
    for step, (xb, yb) in enumerate(forever(loader)):
        if step == WARMUP:
            start = time.perf_counter()
        if step == TRAIN_STEPS + WARMUP:
            break
        loss, norm = train_step(model, optimizer, xb, yb)
        scheduler.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss:.4f} grad norm {norm:.2f}")
    seconds = time.perf_counter() - start

    print(f"held-out accuracy {accuracy(model, signal[:512], tags[:512]):.3f}")
    print(json.dumps({"units": TRAIN_STEPS, "seconds": round(seconds, 3),
                      "wall": round(time.perf_counter() - begin, 3)}))


if __name__ == "__main__":
    main()
