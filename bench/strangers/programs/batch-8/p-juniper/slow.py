"""Rolls a small ocean emulator forward over several steps and trains it on gridded fields."""
import argparse
import json
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DIMS = ("time", "variable", "lat", "lon")
NAMES = ["thetao", "so", "uo", "vo", "zos", "hfds", "tauu", "tauv", "siconc", "mld", "evap", "runoff"]
PROGNOSTIC = NAMES[:8]
FORCING = NAMES[8:]


class Cube:
    """A labelled array, as much of one as this project needs."""

    def __init__(self, values, dims):
        self.values = values
        self.dims = tuple(dims)

    @property
    def shape(self):
        return self.values.shape

    def isel(self, time):
        rows = np.asarray(time)
        rest = self.dims[1:]
        if rows.ndim == 0:
            return Cube(self.values[int(rows)], rest)
        if rows.ndim == 1:
            return Cube(self.values[rows], ("time",) + rest)
        extra = [np.arange(size) for size in self.shape[1:]]
        total = rows.ndim + len(extra)
        picks = [rows.reshape(rows.shape + (1,) * len(extra))]
        for place, indexes in enumerate(extra):
            shape = [1] * total
            shape[rows.ndim + place] = -1
            picks.append(indexes.reshape(shape))
        return Cube(self.values[tuple(picks)], ("step", "time") + rest)

    def transpose(self, *dims):
        return Cube(self.values.transpose([self.dims.index(d) for d in dims]), dims)

    def to_numpy(self):
        return self.values


def make_ocean(days, lat, lon, seed):
    rng = np.random.default_rng(seed)
    y = np.linspace(0, np.pi, lat, dtype=np.float32)[:, None]
    x = np.linspace(0, 2 * np.pi, lon, dtype=np.float32)[None, :]
    fields = np.empty((days, len(NAMES), lat, lon), dtype=np.float32)
    for place in range(len(NAMES)):
        speed, waves, phase = rng.uniform(0.02, 0.2), rng.integers(1, 5), rng.uniform(0, 6)
        for day in range(days):
            fields[day, place] = np.sin(waves * x + speed * day + phase) * np.sin(y) + place
    fields += rng.standard_normal(fields.shape, dtype=np.float32) * 0.05
    wet = np.hypot(np.cos(2 * x), np.sin(y)) > 0.6
    fields[:, :, ~wet] = np.nan
    return fields, torch.from_numpy(wet)


class Source:
    def __init__(self, fields, names):
        places = [NAMES.index(name) for name in names]
        self.data = Cube(np.ascontiguousarray(fields[:, places]), DIMS)
        mean = np.nanmean(fields[:, places], axis=(0, 2, 3))
        std = np.nanstd(fields[:, places], axis=(0, 2, 3))
        self.mean = torch.from_numpy(mean)[:, None, None]
        self.std = torch.from_numpy(std)[:, None, None]

    def normalise(self, tensor):
        return (tensor - self.mean) / self.std


class Rollouts(Dataset):
    def __init__(self, prognostic, forcing, wet, hist, steps):
        self.prognostic = prognostic
        self.forcing = forcing
        self.wet = wet
        self.hist = hist
        self.steps = steps
        self.window = 2 * (hist + 1)

    def __len__(self):
        return self.prognostic.data.shape[0] - self.window - self.steps * (self.hist + 1)

    def rows(self, index, step):
        first = index + step * (self.hist + 1)
        return np.arange(first, first + self.window)

    def prepare(self, source, tensor):
        return torch.where(self.wet, source.normalise(tensor), torch.zeros(()))

    def __getitem__(self, index):
        rows = np.stack([self.rows(index, step) for step in range(self.steps)])
        block = torch.from_numpy(
            self.prognostic.data.isel(time=rows).transpose("step", "time", "variable", "lat", "lon").to_numpy()
        )
        outside = torch.from_numpy(
            self.forcing.data.isel(time=rows).to_numpy()
        )[:, self.hist]
        block = self.prepare(self.prognostic, block)
        outside = self.prepare(self.forcing, outside)
        before = block[:, : self.hist + 1].flatten(1, 2)
        after = block[:, self.hist + 1:].flatten(1, 2)
        return torch.cat([before, outside], dim=1), after


class Emulator(nn.Module):
    def __init__(self, inside, outside, width=32):
        super().__init__()
        self.inside = inside
        self.enter = nn.Conv2d(inside + outside, width, 5, stride=5)
        turn = nn.Conv2d(width, width, 3, padding=1, padding_mode="circular")
        self.mix = nn.Sequential(nn.GELU(), turn, nn.GELU())
        self.leave = nn.ConvTranspose2d(width, inside, 5, stride=5)

    def forward(self, state, outside):
        hidden = self.enter(torch.cat([state, outside], dim=1))
        return state + self.leave(hidden + self.mix(hidden))


def roll(model, inputs, targets, wet, criterion):
    state = inputs[:, 0, : model.inside]
    total = 0.0
    for step in range(inputs.shape[1]):
        state = model(state, inputs[:, step, model.inside:]) * wet
        total = total + criterion(state, targets[:, step])
    return total / inputs.shape[1]


def main():
    began = time.perf_counter()
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=240)
    parser.add_argument("--lat", type=int, default=90)
    parser.add_argument("--lon", type=int, default=180)
    parser.add_argument("--rollout", type=int, default=4)
    parser.add_argument("--steps", type=int, default=420)
    args = parser.parse_args()
    torch.manual_seed(11)
    torch.set_num_threads(2)

    hist = 1
    fields, wet = make_ocean(args.days, args.lat, args.lon, 4)
    prognostic, forcing = Source(fields, PROGNOSTIC), Source(fields, FORCING)
    loader = DataLoader(Rollouts(prognostic, forcing, wet, hist, args.rollout), batch_size=2, shuffle=True, drop_last=True)
    model = Emulator((hist + 1) * len(PROGNOSTIC), len(FORCING))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.MSELoss()

    done, warm, start, losses = 0, 5, 0.0, []
    while done < args.steps:
        for inputs, targets in loader:
            if done == warm:
                start = time.perf_counter()
            optimizer.zero_grad()
            loss = roll(model, inputs, targets, wet, criterion)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            done += 1
            if done % 40 == 0:
                print(f"step {done} loss {np.mean(losses[-40:]):.4f}", flush=True)
            if done >= args.steps:
                break
    seconds = time.perf_counter() - start
    wall = time.perf_counter() - began
    print(json.dumps({"units": done - warm, "seconds": round(seconds, 3), "wall": round(wall, 3)}))


if __name__ == "__main__":
    main()
