"""Trains a deep, narrow network, and reads the loss and the norm of every gradient after each step."""
import torch
from torch import nn

import training

options = training.arguments()
torch.manual_seed(0)
WIDTH, BATCH, DEPTH = (32, 16, 4) if options.tiny else (1024, 1024, 48)
model = nn.Sequential(*[layer for _ in range(DEPTH) for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU())]).to(options.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
data = torch.randn(8, BATCH, WIDTH, device=options.device)
history = []


def batches():
    while True:
        yield from data


def step(batch):
    optimizer.zero_grad()
    loss = (model(batch) - batch).square().mean()
    loss.backward()
    norms = [weights.grad.norm().item() for weights in model.parameters()]
    optimizer.step()
    history.append((loss.item(), max(norms)))
    return loss.detach()


training.train(options, batches(), step)
