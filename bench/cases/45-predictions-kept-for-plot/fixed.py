"""Seismic denoiser; the trainer keeps what it needs for the plots of the report."""
import json
import time

import numpy as np
import tensorflow as tf

LENGTH = 2048


def shots(count, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(LENGTH) / 250
    arrival = rng.uniform(1, 5, (count, 1))
    wavelet = np.exp(-((t - arrival) * 8) ** 2) * np.cos(2 * np.pi * rng.uniform(10, 30, (count, 1)) * (t - arrival))
    noisy = wavelet + rng.normal(0, 0.3, wavelet.shape)
    return noisy.astype("float32")[..., None], wavelet.astype("float32")[..., None]


class Denoiser(tf.Module):
    def __init__(self, channels=6, depth=3, seed=45):
        super().__init__()
        rng = np.random.default_rng(seed)
        sizes = [1] + [channels] * (depth - 1) + [1]
        self.kernels = [tf.Variable(rng.normal(0, 0.7 / np.sqrt(9 * a), (9, a, b)).astype("float32"))
                        for a, b in zip(sizes, sizes[1:])]

    def __call__(self, x):
        for kernel in self.kernels[:-1]:
            x = tf.nn.relu(tf.nn.conv1d(x, kernel, 1, "SAME"))
        return tf.nn.conv1d(x, self.kernels[-1], 1, "SAME")


class Trainer:
    def __init__(self, net, rate):
        self.net, self.rate = net, rate
        self.losses, self.error = [], None

    @tf.function
    def update(self, noisy, clean):
        with tf.GradientTape() as tape:
            restored = self.net(noisy)
            loss = tf.reduce_mean(tf.square(restored - clean))
        for kernel, gradient in zip(self.net.kernels, tape.gradient(loss, self.net.kernels)):
            kernel.assign_sub(self.rate * gradient)
        return loss, restored

    def run(self, dataset):
        for noisy, clean in dataset:
            loss, restored = self.update(noisy, clean)
            self.losses.append(loss)
        self.error = restored - clean

    def report(self):
        losses = np.array([float(loss) for loss in self.losses])
        print(f"loss {losses[:20].mean():.4f} -> {losses[-20:].mean():.4f}, "
              f"worst trace off by {float(tf.reduce_max(tf.abs(self.error))):.2f}")


def main():
    noisy, clean = shots(1024, 45)
    dataset = tf.data.Dataset.from_tensor_slices((noisy, clean)).cache().shuffle(1024, seed=3).batch(64).prefetch(2)
    trainer = Trainer(Denoiser(), 0.05)
    trainer.update(tf.constant(noisy[:64]), tf.constant(clean[:64]))
    start = time.perf_counter()
    epochs = 40
    for _ in range(epochs):
        trainer.run(dataset)
    seconds = time.perf_counter() - start
    trainer.report()
    print(json.dumps({"samples": epochs * 1024, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
