"""Keeps every step's activations on the device for a plot, until there is no memory left."""
import torch
from torch import nn

import training

options = training.arguments()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096)).to(options.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(32768, 4096, device=options.device)
kept = []


def batches():
    while True:
        yield data


def step(batch):
    optimizer.zero_grad()
    activations = model(batch)
    kept.append(activations)
    loss = (activations - batch).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


training.train(options, batches(), step)
