"""Live noise suppression: a causal TCN cleans a call, one short block of frames per request."""
import collections
import json
import os
import queue
import tempfile
import threading
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import orthogonal
from torch.nn.utils.parametrize import is_parametrized, remove_parametrizations

FFT = 512
HOP = 128
BINS = FFT // 2 + 1
FRAMES = 2
WIDTH = 320


class CausalConv(nn.Module):
    """Dilated causal convolution over [1, frames, channels]; remembers the last frames between calls.

    Written as a gather of the taps and one product: nn.Conv1d is slow for two frames.
    """

    def __init__(self, cin, cout, kernel, dilation):
        super().__init__()
        self.mix = nn.Linear(kernel * cin, cout)
        self.kernel, self.dilation = kernel, dilation
        self.past = (kernel - 1) * dilation
        self.register_buffer("memory", torch.zeros(1, self.past, cin), persistent=False)

    def forward(self, x):
        frames = x.shape[1]
        x = torch.cat([self.memory, x], dim=1)
        self.memory = x[:, -self.past:].clone()
        taps = [x[:, k * self.dilation:k * self.dilation + frames] for k in range(self.kernel)]
        return self.mix(torch.cat(taps, dim=-1))


class Block(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.first = CausalConv(width, width, 3, dilation)
        self.second = CausalConv(width, width, 3, dilation)

    def forward(self, x):
        y = F.leaky_relu(self.first(x), 0.2)
        return x + F.leaky_relu(self.second(y), 0.2)


class Suppressor(nn.Module):
    def __init__(self, width=WIDTH, dilations=(1, 2, 4, 8)):
        super().__init__()
        self.enter = nn.Linear(BINS, width)
        self.turn = orthogonal(nn.Linear(width, width, bias=False))
        self.blocks = nn.ModuleList(Block(width, d) for d in dilations)
        self.back = orthogonal(nn.Linear(width, width, bias=False))
        self.leave = nn.Linear(width, BINS)

    def forward(self, magnitude):
        x = self.turn(self.enter(torch.log1p(magnitude)))
        for block in self.blocks:
            x = block(x)
        return torch.sigmoid(self.leave(self.back(x)))


def write_checkpoint(folder):
    torch.manual_seed(3)
    model = Suppressor()
    path = os.path.join(folder, "tcn_0120.pt")
    torch.save({"model": model.state_dict(), "epoch": 120, "si_sdr": 15.2}, path)
    return path


def write_call(folder, blocks, seed=0):
    rng = np.random.default_rng(seed)
    n = blocks * FRAMES * HOP
    t = np.arange(n, dtype=np.float32) / 16_000
    voice = np.sin(2 * np.pi * 180 * t) * (np.sin(2 * np.pi * 1.5 * t) > 0)
    audio = 0.3 * voice + 0.1 * rng.standard_normal(n, dtype=np.float32)
    path = os.path.join(folder, "call.npy")
    np.save(path, audio.astype(np.float32))
    return path


def load_model(path):
    state = torch.load(path, map_location="cpu", weights_only=True)
    model = Suppressor()
    model.load_state_dict(state["model"])
    for module in list(model.modules()):
        if is_parametrized(module, "weight"):
            remove_parametrizations(module, "weight")
    model.eval()
    for p in model.parameters():
        p.requires_grad_(False)
    print(f"epoch {state['epoch']}, SI-SDR {state['si_sdr']} dB, {sum(p.numel() for p in model.parameters()):,} parameters")
    return model


class Analysis:
    """Sliding window of samples, short-time spectrum of the newest frames."""

    def __init__(self):
        self.window = np.hanning(FFT).astype(np.float32)
        self.samples = np.zeros(FFT + (FRAMES - 1) * HOP, np.float32)

    def push(self, block):
        self.samples = np.concatenate([self.samples[len(block):], block])
        frames = np.lib.stride_tricks.sliding_window_view(self.samples, FFT)[::HOP]
        return np.fft.rfft(frames * self.window, axis=1)


class Synthesis:
    def __init__(self):
        self.window = np.hanning(FFT).astype(np.float32)
        self.tail = np.zeros(FFT + (FRAMES - 1) * HOP, np.float32)

    def push(self, spectrum):
        for i, frame in enumerate(np.fft.irfft(spectrum, n=FFT, axis=1)):
            self.tail[i * HOP:i * HOP + FFT] += (frame * self.window).astype(np.float32)
        out = self.tail[:FRAMES * HOP].copy() / 1.5
        self.tail = np.concatenate([self.tail[FRAMES * HOP:], np.zeros(FRAMES * HOP, np.float32)])
        return out


def microphone(audio, blocks, inbox):
    size = FRAMES * HOP
    for i in range(blocks):
        inbox.put((i, np.array(audio[i * size:(i + 1) * size])))
    inbox.put(None)


@torch.inference_mode()
def gains(model, spectrum):
    magnitude = np.abs(spectrum).astype(np.float32)
    return model(torch.from_numpy(magnitude).unsqueeze(0))[0].numpy()


def serve(model, audio, blocks, sink, warmup=50):
    inbox = queue.Queue(maxsize=8)
    thread = threading.Thread(target=microphone, args=(audio, blocks, inbox), daemon=True)
    thread.start()
    analysis, synthesis = Analysis(), Synthesis()
    latency, level, started = collections.deque(maxlen=1000), 0.0, None
    while (item := inbox.get()) is not None:
        number, block = item
        if number == warmup:
            started = time.perf_counter()
        t0 = time.perf_counter()
        spectrum = analysis.push(block)
        clean = synthesis.push(spectrum * np.maximum(gains(model, spectrum), 0.05))
        level = 0.99 * level + 0.01 * float(np.abs(clean).mean())
        sink.write((np.clip(clean, -1, 1) * 32767).astype("<i2").tobytes())
        latency.append(time.perf_counter() - t0)
        if (number + 1) % 1000 == 0:
            p50, p99 = np.percentile(latency, [50, 99]) * 1e3
            print(f"{number + 1} blocks, p50 {p50:.2f} ms, p99 {p99:.2f} ms, level {level:.4f}")
    thread.join()
    return blocks - warmup, time.perf_counter() - started


def main(blocks=9000):
    begun = time.perf_counter()
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        model = load_model(write_checkpoint(folder))
        audio = np.load(write_call(folder, blocks), mmap_mode="r")
        with open(os.path.join(folder, "out.pcm"), "wb") as sink:
            units, seconds = serve(model, audio, blocks, sink)
        print("bytes of audio:", os.path.getsize(os.path.join(folder, "out.pcm")))
    print(json.dumps({"units": units, "seconds": round(seconds, 4), "wall": round(time.perf_counter() - begun, 3)}))


if __name__ == "__main__":
    main()
