"""PyTorch: an optimizer's steps, a DataLoader in the process and one with two workers, which hand over in /dev/shm."""

import fault
import numpy as np

fault.begin()
import torch
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, at):
        return torch.full((256,), float(at)) + torch.rand(256)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    model = torch.nn.Sequential(torch.nn.Linear(256, 4), torch.nn.Dropout(0.1), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for workers in (0, 2):
        loader = DataLoader(Points(), batch_size=8, num_workers=workers, shuffle=True)
        for number, batch in enumerate(loader):
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            if number == 3 and not workers:
                fault.moment()
        print(float(loss.detach()).hex())
    for number, weight in enumerate(model.parameters()):
        fault.save("weight%d.bin" % number, weight.detach().numpy().tobytes())
    fault.end(torch.get_rng_state().numpy().tobytes())


if __name__ == "__main__":
    main()
