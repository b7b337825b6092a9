"""Trains on float32 frames that are copied to the device from ordinary (pageable) memory, each step before it starts."""
import torch
from torch import nn

import training

options = training.arguments()
torch.manual_seed(0)
SIDE, BATCH = (64, 8) if options.tiny else (256, 256)
width = 8 if options.tiny else 64
model = nn.Sequential(
    nn.Conv2d(3, width, 8, 8), nn.ReLU(), nn.Conv2d(width, width, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    nn.Linear(width, 10)).to(options.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
frames = [torch.randn(BATCH, 3, SIDE, SIDE) for _ in range(4)]
labels = torch.arange(BATCH, device=options.device) % 10


def batches():
    while True:
        yield from frames


def step(batch):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(batch.to(options.device)), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


training.train(options, batches(), step)
