"""Ranks of DistributedDataParallel over gloo, recorded by torch.profiler.

    torchrun --nproc-per-node=N torch_ranks.py input|compute|even FOLDER ACTIVE

The last rank has slow rows (input), more to compute in each step (compute), or what the others have (even).
"""

import sys
import time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, slow):
        self.slow = slow

    def __len__(self):
        return 4096

    def __getitem__(self, i):
        if self.slow:
            time.sleep(0.002)
        return torch.full((64,), float(i)), torch.zeros(1)


trouble, folder, active = sys.argv[1], sys.argv[2], int(sys.argv[3])
dist.init_process_group("gloo")
rank = dist.get_rank()
last = rank == dist.get_world_size() - 1
torch.set_num_threads(1)
layers = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
model = torch.nn.parallel.DistributedDataParallel(layers)
optimizer = torch.optim.SGD(model.parameters(), 1e-6)
large = torch.randn(700, 700)
loader = DataLoader(Rows(last and trouble == "input"), batch_size=16)

with profile(
    activities=[ProfilerActivity.CPU],
    schedule=schedule(wait=2, warmup=1, active=active, repeat=1),
    on_trace_ready=lambda p: p.export_chrome_trace(f"{folder}/rank{rank}.json"),
) as profiler:
    for step, (x, y) in enumerate(loader):
        if last and trouble == "compute":
            for _ in range(6):
                large @ large
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
        profiler.step()
        if step == 3 + active:
            break
dist.destroy_process_group()
