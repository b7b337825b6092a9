"""Trains a transformer's layers in bfloat16 on sequences that are on the device: nothing to find."""
import torch
from torch import nn

import training

options = training.arguments()
torch.manual_seed(0)
WIDTH, LENGTH, BATCH, DEPTH = (32, 16, 2, 2) if options.tiny else (2048, 1024, 16, 6)
layer = nn.TransformerEncoderLayer(WIDTH, WIDTH // 16, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
model = nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False).to(options.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=options.device == "cuda")
data = torch.randn(4, BATCH, LENGTH, WIDTH, device=options.device)


def batches():
    while True:
        yield from data


def step(batch):
    optimizer.zero_grad()
    with torch.autocast(options.device, dtype=torch.bfloat16):
        loss = (model(batch).float() - batch).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


training.train(options, batches(), step)
