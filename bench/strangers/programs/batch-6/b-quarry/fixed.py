"""Two-tower retrieval training on made-up shop sessions."""
import argparse
import json
import os
import tempfile
import time

T0 = time.perf_counter()

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

DIM = 32
CANARIES = 64


class Sessions(IterableDataset):
    def __init__(self, users, items, batch, batches, seed):
        self.users, self.items = users, items
        self.batch, self.batches, self.seed = batch, batches, seed

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        for _ in range(self.batches):
            user = rng.integers(0, self.users, self.batch)
            taste = user % 97
            base = rng.zipf(1.3, (self.batch, 8)) * 97 + taste[:, None]
            history = base % self.items
            target = (rng.zipf(1.3, self.batch) * 97 + taste) % self.items
            yield (torch.from_numpy(user), torch.from_numpy(history), torch.from_numpy(target))


class TwoTower(nn.Module):
    def __init__(self, users, items):
        super().__init__()
        self.user = nn.Embedding(users, DIM, sparse=True)
        self.item = nn.Embedding(items, DIM, sparse=True)
        nn.init.normal_(self.user.weight, std=0.05)
        nn.init.normal_(self.item.weight, std=0.05)
        self.left = nn.Sequential(nn.Linear(2 * DIM, 256), nn.GELU(), nn.Linear(256, 128),
                                  nn.GELU(), nn.Linear(128, DIM))
        self.right = nn.Sequential(nn.Linear(DIM, 256), nn.GELU(), nn.Linear(256, DIM))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, user, history, target):
        q = torch.cat([self.user(user), self.item(history).mean(1)], 1)
        q = F.normalize(self.left(q), dim=1)
        k = F.normalize(self.right(self.item(target)), dim=1)
        return q @ k.t() * self.scale.exp().clamp(max=30.0)


def make_optimizers(model):
    tables = [model.user.weight, model.item.weight]
    known = {id(p) for p in tables}
    dense = [p for p in model.parameters() if id(p) not in known]
    return [
        torch.optim.SparseAdam(tables, lr=1e-2),
        torch.optim.AdamW(dense, lr=1e-3, weight_decay=1e-4),
    ]


def write_canaries(folder, step, model):
    torch.save(
        {
            "step": step,
            "user": model.user.weight.detach()[:CANARIES].clone(),
            "item": model.item.weight.detach()[:CANARIES].clone(),
            "scale": float(model.scale.detach()),
        },
        os.path.join(folder, f"canary_{step // 3 % 4}.pt"),
    )


def recall_at(scores, k=10):
    rank = (scores > scores.diagonal()[:, None]).sum(1)
    return (rank < k).float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=190)
    ap.add_argument("--users", type=int, default=300_000)
    ap.add_argument("--items", type=int, default=150_000)
    ap.add_argument("--batch", type=int, default=512)
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    data = Sessions(args.users, args.items, args.batch, args.steps, seed=7)
    loader = DataLoader(data, batch_size=None)
    model = TwoTower(args.users, args.items)
    optimizers = make_optimizers(model)
    labels = torch.arange(args.batch)

    losses, recalls, cost = [], [], {"save": 0.0, "opt": 0.0}
    with tempfile.TemporaryDirectory(prefix="tower_") as folder:
        log = open(os.path.join(folder, "log.jsonl"), "w")
        begin = time.perf_counter()
        for step, (user, history, target) in enumerate(loader, 1):
            scores = model(user, history, target)
            loss = 0.5 * (F.cross_entropy(scores, labels) + F.cross_entropy(scores.t(), labels))
            for opt in optimizers:
                opt.zero_grad(set_to_none=True)
            loss.backward()
            t = time.perf_counter()
            for opt in optimizers:
                opt.step()
            cost["opt"] += time.perf_counter() - t
            losses.append(loss.item())
            if step % 4 == 0:
                recalls.append(recall_at(scores.detach()))
            log.write(json.dumps({"step": step, "loss": losses[-1]}) + "\n")
            if step % 3 == 0:
                t = time.perf_counter()
                write_canaries(folder, step, model)
                cost["save"] += time.perf_counter() - t
            if step % 25 == 0:
                log.flush()
                print(f"step {step} loss {np.mean(losses[-25:]):.3f} recall {np.mean(recalls[-6:]):.3f}")
        elapsed = time.perf_counter() - begin
        log.close()
    print(f"optimizer={cost['opt']:.2f} canary={cost['save']:.2f}")
    print(f"steps={step} s_per_step={elapsed / step:.4f} wall={time.perf_counter() - T0:.1f}")


if __name__ == "__main__":
    main()
