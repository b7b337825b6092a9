"""Predicts the activity of short regulatory sequences from a table of measurements."""
import argparse
import csv
import io
import json
import random
import time

import numpy as np
import torch
from sklearn.preprocessing import OneHotEncoder
from torch import nn
from torch.utils.data import DataLoader, Dataset

LETTERS = "ACGT"
MOTIFS = ["TATAAA", "CCAAT", "GGGCGG", "CACGTG", "TGACTCA"]


def write_table(rows, seed):
    """The measurement table as the lab sends it: csv text with typed column names."""
    rng = random.Random(seed)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["left:input:dna", "right:input:dna", "activity:label:float", "plate:meta:str"])
    for row in range(rows):
        left = [rng.choice(LETTERS) for _ in range(rng.randint(90, 120))]
        right = [rng.choice(LETTERS) for _ in range(rng.randint(50, 60))]
        score = 0.0
        for weight, motif in enumerate(MOTIFS, start=1):
            if rng.random() < 0.4:
                at = rng.randrange(len(left) - len(motif))
                left[at:at + len(motif)] = motif
                score += 0.3 * weight
        score += rng.gauss(0.0, 0.1)
        writer.writerow(["".join(left), "".join(right), f"{score:.4f}", f"P{row % 12}"])
    out.seek(0)
    return out


class LettersEncoder:
    def __init__(self, alphabet):
        self.alphabet = alphabet
        self.inner = OneHotEncoder(
            categories=[list(alphabet)], handle_unknown="ignore", sparse_output=False
        ).fit(np.array(list(alphabet)).reshape(-1, 1))

    def encode(self, text):
        column = np.array(list(text)).reshape(-1, 1)
        return self.inner.transform(column).astype(np.float32)


class NumberEncoder:
    def encode(self, text):
        return np.array([float(text)], dtype=np.float32)


ENCODERS = {"dna": LettersEncoder(LETTERS), "float": NumberEncoder()}


class Table:
    """Columns of the csv, grouped by what they are for."""

    def __init__(self, handle):
        reader = csv.reader(handle)
        header = [name.split(":") for name in next(reader)]
        rows = list(reader)
        self.count = len(rows)
        self.columns = {"input": {}, "label": {}, "meta": {}}
        for place, (name, role, kind) in enumerate(header):
            self.columns[role][name] = (kind, [row[place] for row in rows])

    def __len__(self):
        return self.count

    def encoded(self, role, index):
        found = {}
        for name, (kind, texts) in self.columns[role].items():
            found[name] = ENCODERS[kind].encode(texts[index])
        return found


def fit_length(array, length):
    room = length - array.shape[0]
    if room > 0:
        array = np.pad(array, ((0, room), (0, 0)))
    return array[:length]


class Sequences(Dataset):
    def __init__(self, table, lengths):
        self.table = table
        self.lengths = lengths

    def __len__(self):
        return len(self.table)

    def __getitem__(self, index):
        inputs = self.table.encoded("input", index)
        label = self.table.encoded("label", index)
        x = {name: torch.from_numpy(fit_length(inputs[name], size)) for name, size in self.lengths.items()}
        y = torch.from_numpy(label["activity"])
        return x, y


class Arm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(4, width, 9, padding=4), nn.BatchNorm1d(width), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(width, width, 7, padding=3), nn.BatchNorm1d(width), nn.ReLU(),
            nn.AdaptiveMaxPool1d(1),
        )

    def forward(self, x):
        return self.body(x.transpose(1, 2)).squeeze(-1)


class Activity(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.left = Arm(width)
        self.right = Arm(width)
        self.head = nn.Sequential(nn.Linear(2 * width, 96), nn.ReLU(), nn.Dropout(0.1), nn.Linear(96, 1))

    def forward(self, x):
        return self.head(torch.cat([self.left(x["left"]), self.right(x["right"])], dim=1))


@torch.no_grad()
def score(model, loader):
    model.eval()
    guesses, truths = [], []
    for x, y in loader:
        guesses.append(model(x).squeeze(1))
        truths.append(y.squeeze(1))
    model.train()
    return torch.corrcoef(torch.stack([torch.cat(guesses), torch.cat(truths)]))[0, 1].item()


def main():
    began = time.perf_counter()
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(5)
    torch.set_num_threads(2)

    lengths = {"left": 120, "right": 60}
    train = DataLoader(Sequences(Table(write_table(args.rows, 1)), lengths),
                       batch_size=args.batch, shuffle=True, drop_last=True)
    held = DataLoader(Sequences(Table(write_table(384, 2)), lengths), batch_size=128)

    model = Activity()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    plan = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=args.epochs * len(train))
    criterion = nn.SmoothL1Loss()
    steps, spent = 0, 0.0
    for epoch in range(args.epochs):
        since = time.perf_counter()
        losses = []
        for x, y in train:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            plan.step()
            losses.append(loss.detach())
        if epoch > 0:
            spent += time.perf_counter() - since
            steps += len(train)
        print(f"epoch {epoch} loss {torch.stack(losses).mean().item():.4f} r {score(model, held):.3f}", flush=True)
    wall = time.perf_counter() - began
    print(json.dumps({"units": steps, "seconds": round(spent, 3), "wall": round(wall, 3)}))


if __name__ == "__main__":
    main()
