"""Series of a report made by hand."""

from __future__ import annotations

import itertools
import math
import random


def series(
    seed: int = 7, steps: int = 600, mean_ms: float = 78.9, *, call: float = 0.31
) -> dict[str, tuple[float, ...]]:
    """Plausible series: a warm-up, a slow drift, a checkpoint's spike."""
    rng = random.Random(seed)
    times, clock = [], 3.2
    rows = []
    for i in range(steps):
        ms = mean_ms * rng.lognormvariate(0, 0.09) * (1.12 if 240 <= i < 330 else 1.0)
        if rng.random() < 0.008:
            ms *= rng.uniform(1.6, 3.2)
        clock += ms / 1000
        times.append(clock)
        rows.append(ms)
    buckets = 60
    size = max(1, len(rows) // buckets)
    groups = [sorted(rows[i : i + size]) for i in range(0, len(rows), size)]
    at = [round(times[i], 3) for i in range(0, len(rows), size)]
    slow = sorted(range(len(rows)), key=lambda i: -rows[i])[:20]
    edges = [mean_ms * 10 ** (-0.5 + i * 0.03) for i in range(41)]
    counts = [sum(lo <= r < hi for r in rows) for lo, hi in itertools.pairwise(edges)]
    shares = {"input-wait": 0.92 - call, "call": call, "callbacks": 0.05, "other-python": 0.03}
    seconds = [float(i) for i in range(int(clock) + 2)]
    result = {
        "step_t": at,
        "step_ms_p50": [g[len(g) // 2] for g in groups],
        "step_ms_p95": [g[int(0.95 * (len(g) - 1))] for g in groups],
        "step_ms_max": [g[-1] for g in groups],
        "anat_t": at,
        "outlier_t": [times[i] for i in sorted(slow)],
        "outlier_ms": [rows[i] for i in sorted(slow)],
        "hist_ms_edges": edges,
        "hist_count": [float(c) for c in counts],
        "res_t": seconds,
        "res:cpu_cores": [1.0 + 0.35 * math.tanh(s - 3) + rng.uniform(-0.1, 0.1) for s in seconds],
        "res:others_cores": [max(0.0, 0.15 + rng.uniform(-0.1, 0.2)) for _ in seconds],
        "res:wait_cores": [max(0.0, 0.08 + rng.uniform(-0.08, 0.1)) for _ in seconds],
        "res:rss_mb": [420 + 480 * (1 - math.exp(-s / 4)) + rng.uniform(-4, 4) for s in seconds],
        "res:read_mb_s": [38.0 if s < 3 else max(0.0, rng.gauss(0.4, 0.4)) for s in seconds],
        "res:write_mb_s": [max(0.0, rng.gauss(0.1, 0.1)) + (22 if s == 24 else 0) for s in seconds],
    }
    for key, share in shares.items():
        means = [sum(g) / len(g) for g in groups]
        result[f"anat:{key}"] = [m * share * rng.uniform(0.96, 1.04) for m in means]
    return {key: tuple(round(v, 4) for v in values) for key, values in result.items()}
