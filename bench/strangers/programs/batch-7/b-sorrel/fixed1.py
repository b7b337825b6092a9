"""Entity tagging of contracts: fine-tunes a small BERT tagger on long paragraphs."""
import collections
import json
import math
import os
import sys
import tempfile
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.modules.setdefault("torchvision", None)

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForTokenClassification, BertConfig, get_linear_schedule_with_warmup

TAGS = ["O"] + [f"{p}-{k}" for k in ("PARTY", "DATE", "SUM", "PLACE", "TERM") for p in ("B", "I")]
VOCAB = 4000
LENGTH = 448
BATCH = 3
STEPS_PER_EPOCH = 240
EPOCHS = 1
WARMUP = 4
LOG_EVERY = 30


def write_corpus(path, documents, seed=0):
    """Token ids and tags, one JSON line per paragraph."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as out:
        for _ in range(documents):
            n = int(rng.integers(int(0.75 * LENGTH), LENGTH - 1))
            ids = rng.integers(1000, VOCAB, n)
            tags = np.zeros(n, np.int64)
            i = int(rng.integers(0, 6))
            while i < n - 5:
                kind, size = int(rng.integers(0, 5)), int(rng.integers(1, 5))
                tags[i] = 1 + 2 * kind
                tags[i + 1:i + size] = 2 + 2 * kind
                ids[i:i + size] = 200 + 100 * kind + rng.integers(0, 100, size)
                i += size + int(rng.integers(2, 9))
            out.write(json.dumps({"ids": ids.tolist(), "tags": tags.tolist()}) + "\n")


class Contracts(Dataset):
    def __init__(self, path):
        self.rows = []
        with open(path) as lines:
            for line in lines:
                row = json.loads(line)
                self.rows.append((np.asarray(row["ids"]), np.asarray(row["tags"])))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def collate(rows):
    longest = max(len(ids) for ids, _ in rows) + 2
    longest = 8 * math.ceil(longest / 8)
    batch = {
        "input_ids": torch.zeros(len(rows), longest, dtype=torch.long),
        "attention_mask": torch.zeros(len(rows), longest, dtype=torch.long),
        "labels": torch.full((len(rows), longest), -100, dtype=torch.long),
    }
    for i, (ids, tags) in enumerate(rows):
        n = len(ids)
        batch["input_ids"][i, :n + 2] = torch.from_numpy(np.concatenate([[101], ids, [102]]))
        batch["attention_mask"][i, :n + 2] = 1
        batch["labels"][i, 1:n + 1] = torch.from_numpy(tags)
    return batch


def build_model():
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=96,
        num_hidden_layers=3,
        num_attention_heads=8,
        intermediate_size=192,
        max_position_embeddings=512,
        attention_probs_dropout_prob=0.0,
        num_labels=len(TAGS),
        id2label=dict(enumerate(TAGS)),
        label2id={t: i for i, t in enumerate(TAGS)},
    )
    return AutoModelForTokenClassification.from_config(config, attn_implementation="sdpa")


def spans(tags):
    found, start, kind = [], None, None
    for i, tag in enumerate(tags + ["O"]):
        prefix, _, name = tag.partition("-")
        if start is not None and (prefix != "I" or name != kind):
            found.append((kind, start, i))
            start = None
        if prefix == "B" or (prefix == "I" and start is None):
            start, kind = i, name
    return found


class EntityScore:
    """Entity-level F1 of one epoch."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.truth, self.guess = [], []

    def add(self, logits, labels):
        best = logits.detach().argmax(-1).numpy()
        for row, gold in zip(best, labels.numpy()):
            keep = gold != -100
            self.truth.append([TAGS[t] for t in gold[keep]])
            self.guess.append([TAGS[t] for t in row[keep]])

    def compute(self):
        counts = collections.defaultdict(lambda: [0, 0, 0])
        for truth, guess in zip(self.truth, self.guess):
            gold, seen = set(spans(truth)), set(spans(guess))
            for span in gold:
                counts[span[0]][0] += span in seen
                counts[span[0]][2] += 1
            for span in seen:
                counts[span[0]][1] += 1
        right, said, there = (sum(c[i] for c in counts.values()) for i in range(3))
        precision, recall = right / max(1, said), right / max(1, there)
        return 2 * precision * recall / max(1e-9, precision + recall)


def parameter_groups(model, decay=0.01):
    plain = [p for n, p in model.named_parameters() if n.endswith("bias") or "LayerNorm" in n]
    rest = [p for n, p in model.named_parameters() if not (n.endswith("bias") or "LayerNorm" in n)]
    return [{"params": rest, "weight_decay": decay}, {"params": plain, "weight_decay": 0.0}]


def train(model, loader, journal):
    optimizer = torch.optim.AdamW(parameter_groups(model), lr=1e-3)
    schedule = get_linear_schedule_with_warmup(optimizer, 8, EPOCHS * STEPS_PER_EPOCH)
    score, step, started = EntityScore(), 0, None
    model.train()
    for epoch in range(EPOCHS):
        score.reset()
        for batch in loader:
            if step == WARMUP:
                started = time.perf_counter()
            out = model(**batch)
            out.loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            score.add(out.logits, batch["labels"])
            step += 1
            row = {"step": step, "loss": out.loss.item(), "norm": norm.item(), "lr": schedule.get_last_lr()[0]}
            row["f1"] = score.compute()
            journal.write(json.dumps(row) + "\n")
            if step % LOG_EVERY == 0:
                print(f"epoch {epoch} step {step} loss {row['loss']:.4f} norm {row['norm']:.2f}")
        print(f"epoch {epoch} entity F1 {score.compute():.3f}")
    return step - WARMUP, time.perf_counter() - started


def main():
    begun = time.perf_counter()
    torch.manual_seed(0)
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        corpus = os.path.join(folder, "contracts.jsonl")
        write_corpus(corpus, BATCH * STEPS_PER_EPOCH)
        data = Contracts(corpus)
        loader = DataLoader(data, batch_size=BATCH, shuffle=True, collate_fn=collate, drop_last=True)
        model = build_model()
        print(f"{model.num_parameters():,} parameters, {len(data)} paragraphs")
        with open(os.path.join(folder, "journal.jsonl"), "w") as journal:
            units, seconds = train(model, loader, journal)
        torch.save(model.state_dict(), os.path.join(folder, "tagger.pt"))
    print(json.dumps({"units": units, "seconds": round(seconds, 4), "wall": round(time.perf_counter() - begun, 3)}))


if __name__ == "__main__":
    main()
