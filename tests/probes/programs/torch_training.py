"""Forty steps of PyTorch: twenty with a loader in the process, in two passes, and twenty with a worker."""

import torch
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, at):
        return torch.full((3,), float(at))


torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters())
loaders = [DataLoader(Points(), batch_size=4), DataLoader(Points(), batch_size=4, num_workers=1)]
for loader in loaders:
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
print("%.6f" % loss.detach())
