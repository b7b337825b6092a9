"""The segmentation network of the case studies in JAX, its pictures, and the loop that trains it."""
import argparse
import functools
import json
import queue
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np

CLASSES = 4


def arguments():
    """The command line's parser; a program may add to it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tiny", action="store_true", help="small pictures, few steps: for a CPU")
    parser.add_argument("--steps", type=int, default=0, help="steps that are timed (default 100; 12 with --tiny)")
    parser.add_argument("--width", type=int, default=0, help="filters of the first layers (default 256; 4 with --tiny)")
    parser.add_argument("--trace", default="", metavar="FOLDER", help="trace ten steps after those that are timed")
    parser.add_argument("--mark", action="store_true", help="mark the steps with stepscope.step()")
    return parser


class Sizes:
    """side: of a picture, pixels. width: filters of the first layers. count: pictures in memory."""

    def __init__(self, options):
        self.side, self.width, self.count = (32, 4, 64) if options.tiny else (256, 256, 256)
        self.width = options.width or self.width
        self.steps = options.steps or (12 if options.tiny else 100)
        self.trace, self.mark = options.trace, options.mark


def pictures(count, side, seed=0):
    """uint8[count, side, side, 3] and the class of each pixel, uint8[count, side, side]."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 60, (count, side, side, 3), dtype=np.uint8)
    masks = np.zeros((count, side, side), np.uint8)
    small, large = side // 12, side // 5
    for image, mask in zip(images, masks):
        for kind in range(1, CLASSES):
            top, left = rng.integers(0, side - large, 2)
            height, width = rng.integers(small, large, 2)
            image[top:top + height, left:left + width, kind - 1] += 120
            mask[top:top + height, left:left + width] = kind
    return images, masks


# ---- the network


def layer(rng, inputs, outputs, size):
    scale = (2 / (size * size * inputs)) ** 0.5
    weights = (scale * rng.standard_normal((size, size, inputs, outputs))).astype(np.float32)
    return weights, np.ones(outputs, np.float32), np.zeros(outputs, np.float32)


def network(width, size=3):
    """Weights by layer. size: of the kernel of the last convolution but one."""
    plan = [("stem", 3, width, 5), ("a1", width, width, 3), ("a2", width, width, 3), ("b1", width, 2 * width, 3),
            ("b2", 2 * width, 2 * width, 3), ("c1", 2 * width, 3 * width, 3), ("c2", 3 * width, 3 * width, 3),
            ("d1", 5 * width, 2 * width, 3), ("d2", 3 * width, width, 3), ("last", width, width, size),
            ("out", width, CLASSES, 1)]
    rng = np.random.default_rng(0)
    return jax.device_put({name: layer(rng, inputs, outputs, of) for name, inputs, outputs, of in plan})


def convolved(x, weights, stride=1):
    return jax.lax.conv_general_dilated(x, weights, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def conv(x, one, stride=1):
    weights, scale, shift = one
    x = convolved(x, weights, stride)
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return jax.nn.relu((x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift)


def pooled(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")


def grown(x, times):
    return jax.image.resize(x, (x.shape[0], x.shape[1] * times, x.shape[2] * times, x.shape[3]), "bilinear")


def scores(weights, images):
    """float32[batch, side, side, classes] of uint8 pictures, of which the last three channels count."""
    w = weights
    x = images[..., -3:].astype(jnp.float32) / 127.5 - 1
    a = conv(conv(conv(x, w["stem"], 4), w["a1"]), w["a2"])
    b = conv(conv(pooled(a), w["b1"]), w["b2"])
    c = conv(conv(pooled(b), w["c1"]), w["c2"])
    d = conv(jnp.concatenate([grown(c, 2), b], -1), w["d1"])
    d = conv(jnp.concatenate([grown(d, 2), a], -1), w["d2"])
    return grown(convolved(conv(d, w["last"]), w["out"][0]), 4)


def loss(weights, images, masks):
    told = jax.nn.log_softmax(scores(weights, images))
    return -jnp.take_along_axis(told, masks[..., None].astype(jnp.int32), -1).mean()


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(weights, moving, images, masks):
    """One step of SGD with momentum."""
    value, slopes = jax.value_and_grad(loss)(weights, images, masks)
    moving = jax.tree.map(lambda m, s: 0.9 * m + s, moving, slopes)
    return jax.tree.map(lambda w, m: w - 1e-2 * m, weights, moving), moving, value


# ---- the input and the loop


def prepared(image, mask, rng):
    """One picture as the network takes it, turned over at random."""
    return (image[:, ::-1], mask[:, ::-1]) if rng.random() < 0.5 else (image, mask)


def batched(samples, size):
    """(images, masks) of ``size`` samples each, for as long as there are any."""
    while True:
        images, masks = zip(*(next(samples) for _ in range(size)))
        yield np.stack(images), np.stack(masks)


def from_memory(sizes, prepare=prepared, frames=1):
    """Prepared samples in random order, without end. frames: of each picture, one after the other in its channels."""
    images, masks = pictures(sizes.count, sizes.side)
    images = np.tile(images, (1, 1, 1, frames))
    rng = np.random.default_rng(1)
    while True:
        for at in rng.permutation(sizes.count):
            yield prepare(images[at], masks[at], rng)


def ahead(batches, depth=2):
    """The same batches, made in a thread while the device computes."""
    ready = queue.Queue(depth)

    def fill():
        for batch in batches:
            ready.put(batch)

    threading.Thread(target=fill, daemon=True).start()
    while True:
        yield ready.get()


def train(sizes, batches, size=3, after=None):
    """Train; print the samples and seconds of the timed steps. after: called with the weights after each step."""
    weights = network(sizes.width, size)
    moving = jax.tree.map(lambda one: one - one, weights)
    batches = ahead(batches)
    mark = (lambda: None)
    if sizes.mark:
        import stepscope
        mark = stepscope.step

    def run(count):
        nonlocal weights, moving
        samples, value = 0, 0.0
        for number in range(count):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                images, masks = next(batches)
                images, masks = jax.device_put((images, masks))
                weights, moving, value = step(weights, moving, images, masks)
                if after is not None:
                    after(weights)
                value.block_until_ready()
            mark()
            samples += len(images)
        return samples, float(value)

    run(5)  # compiles, and fills the queue
    began = time.perf_counter()
    samples, value = run(sizes.steps)
    spent = time.perf_counter() - began
    if sizes.trace:
        with jax.profiler.trace(sizes.trace):
            run(10)
    print(json.dumps({"samples": samples, "seconds": round(spent, 3), "loss": round(value, 3)}))
