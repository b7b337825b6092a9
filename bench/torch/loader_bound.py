"""Trains a small convolutional network on pictures that a DataLoader makes in the training process."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import training

options = training.arguments()
SIDE, BATCH = (16, 16) if options.tiny else (224, 64)


class Pictures(Dataset):
    """Random pictures, turned over, blurred a little and normalised, one after the other."""

    def __init__(self):
        self.pictures = np.random.default_rng(0).integers(0, 255, (256, SIDE, SIDE, 3), dtype=np.uint8)

    def __len__(self):
        return 1 << 20

    def __getitem__(self, at):
        picture = self.pictures[at % 256][:, ::-1].astype(np.float32) / 255
        for axis in (0, 1):
            picture = 0.25 * np.roll(picture, 1, axis) + 0.5 * picture + 0.25 * np.roll(picture, -1, axis)
        return torch.from_numpy(np.ascontiguousarray((picture - 0.5).transpose(2, 0, 1))), at % 10


torch.manual_seed(0)
width = 8 if options.tiny else 64
model = nn.Sequential(
    nn.Conv2d(3, width, 7, 4), nn.ReLU(), nn.Conv2d(width, width, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    nn.Linear(width, 10)).to(options.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def step(batch):
    pictures, labels = (one.to(options.device) for one in batch)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(pictures), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


training.train(options, DataLoader(Pictures(), batch_size=BATCH), step)
