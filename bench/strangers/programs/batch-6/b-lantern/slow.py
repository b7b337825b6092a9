"""Score short support tickets with a text model behind a small in-process service."""
import argparse
import queue
import threading
import time
from concurrent.futures import Future

T0 = time.perf_counter()

import numpy as np
import torch
from torch import nn

VOCAB = 8000
LENGTH = 64
LABELS = 12
MAX_BATCH = 16
MAX_WAIT = 0.040
WORDS = ("printer login refund invoice slow crash order reset password screen update "
         "battery parcel late broken account email network missing cancel").split()


class TicketNet(nn.Module):
    def __init__(self, dim=96, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=0)
        layer = nn.TransformerEncoderLayer(dim, 4, dim * 4, 0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, LABELS)

    def forward(self, ids):
        pad = ids == 0
        h = self.encoder(self.embed(ids), src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(-1)
        return self.head((h * keep).sum(1) / keep.sum(1).clamp(min=1))


def tokenise(text):
    ids = [1 + sum(ord(c) * 31 ** i for i, c in enumerate(w)) % (VOCAB - 1) for w in text.split()]
    return ids[:LENGTH]


class Batcher(threading.Thread):
    def __init__(self, model):
        super().__init__(daemon=True)
        self.model = model
        self.inbox = queue.Queue()
        self.sizes = []
        self.busy = 0.0

    def submit(self, ids):
        future = Future()
        self.inbox.put((ids, future))
        return future

    def gather(self):
        first = self.inbox.get()
        if first is None:
            return None
        batch = [first]
        deadline = time.perf_counter() + MAX_WAIT
        while len(batch) < MAX_BATCH:
            left = deadline - time.perf_counter()
            if left <= 0:
                break
            try:
                item = self.inbox.get(timeout=left)
            except queue.Empty:
                break
            if item is None:
                self.inbox.put(None)
                break
            batch.append(item)
        return batch

    def score(self, batch):
        width = max(len(ids) for ids, _ in batch)
        ids = torch.zeros(len(batch), width, dtype=torch.long)
        for row, (tokens, _) in enumerate(batch):
            ids[row, :len(tokens)] = torch.tensor(tokens)
        with torch.inference_mode():
            return self.model(ids).softmax(-1).numpy()

    def run(self):
        while (batch := self.gather()) is not None:
            start = time.perf_counter()
            try:
                probs = self.score(batch)
            except Exception as err:
                for _, future in batch:
                    future.set_exception(err)
                continue
            self.busy += time.perf_counter() - start
            self.sizes.append(len(batch))
            for (_, future), row in zip(batch, probs):
                future.set_result(row)


class Stats:
    def __init__(self):
        self.lock = threading.Lock()
        self.latency = []
        self.votes = np.zeros(LABELS, dtype=int)

    def add(self, seconds, label):
        with self.lock:
            self.latency.append(seconds)
            self.votes[label] += 1


def client(number, batcher, stats, requests):
    rng = np.random.default_rng(100 + number)
    for _ in range(requests):
        text = " ".join(rng.choice(WORDS, rng.integers(12, LENGTH)))
        start = time.perf_counter()
        row = batcher.submit(tokenise(text)).result(timeout=60)
        stats.add(time.perf_counter() - start, int(row.argmax()))


def reporter(stats, stop):
    while not stop.wait(5.0):
        with stats.lock:
            recent = stats.latency[-200:]
        if recent:
            print(f"p50 {np.median(recent) * 1e3:.1f} ms over the last {len(recent)}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--clients", type=int, default=3)
    ap.add_argument("--requests", type=int, default=750)
    args = ap.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = TicketNet().eval()
    batcher = Batcher(model)
    batcher.start()
    for n in (4, 32, 60):
        batcher.submit(list(range(1, n))).result()
    batcher.sizes.clear()
    batcher.busy = 0.0

    stats, stop = Stats(), threading.Event()
    watch = threading.Thread(target=reporter, args=(stats, stop), daemon=True)
    watch.start()
    begin = time.perf_counter()
    clients = [threading.Thread(target=client, args=(i, batcher, stats, args.requests))
               for i in range(args.clients)]
    for t in clients:
        t.start()
    for t in clients:
        t.join()
    elapsed = time.perf_counter() - begin
    stop.set()
    batcher.inbox.put(None)
    batcher.join()
    total = len(stats.latency)
    print(f"batches={len(batcher.sizes)} mean_size={np.mean(batcher.sizes):.2f} model_busy={batcher.busy:.2f}")
    print("votes", stats.votes.tolist())
    print(f"steps={total} s_per_step={elapsed / total:.4f} wall={time.perf_counter() - T0:.1f}")


if __name__ == "__main__":
    main()
