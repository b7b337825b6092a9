"""A training that goes on until a file exists, and says when each of its steps ended and when it was profiled.

``--own N``: it profiles ten steps N times itself, with TensorFlow's start and stop in the training thread, as one does
without stepscope; a loop of small calls then ends by itself. ``--burn MS``: N times another thread takes so much CPU
time instead, without the interpreter's lock and without memory: what any thread costs the steps that share its core.
``--fill N``: N more threads of the program never rest, so that no core is free.
Runs on TensorFlow 2.15 and later.
"""

import argparse
import hashlib
import json
import os
import threading
import time

import numpy as np
import tensorflow as tf

SIZES = {"5": (512, 2, 256), "25": (768, 3, 384), "80": (1024, 4, 560)}
"""Width, layers and batch for steps of about so many milliseconds on one core."""
STEPS = 10
"""Of a profile."""
CALLS = 2_000
"""Small calls of a step of ``calls``."""
WARM_STEPS = 30
"""After which the job is ready: its steps are known."""

parser = argparse.ArgumentParser()
parser.add_argument("--kind", choices=("fit", "calls", "inception", "video"), default="fit")
parser.add_argument("--step-ms", choices=sorted(SIZES), default="5")
parser.add_argument("--own", type=int, default=0)
parser.add_argument("--every", type=int, default=100, help="steps between two profiles of its own")
parser.add_argument("--burn", type=float, default=0.0, help="milliseconds")
parser.add_argument("--fill", type=int, default=0, help="threads")
parser.add_argument("--until", required=True)
parser.add_argument("--out", required=True)
args = parser.parse_args()

ends, gaps, own = [], [], []
started = turns = 0


def burn(began):
    """Take CPU time, in one call that has let go of the interpreter's lock; note it as a profile of the last steps."""
    stopped, used = time.monotonic_ns(), time.thread_time_ns()
    hashlib.pbkdf2_hmac("sha256", b"", b"", turns)
    own.append([began, stopped, time.monotonic_ns(), time.thread_time_ns() - used])


def turns_of(ms):
    """How many turns of ``burn`` take so much CPU time."""
    used = time.thread_time_ns()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 100_000)
    return max(1, int(100_000 * ms * 1e6 / (time.thread_time_ns() - used)))


def fill():
    """Keep a core busy for good, as ``burn`` does."""
    while True:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000)


def step_ended():
    """Note it, profile, and say whether to go on."""
    global started
    ends.append(time.monotonic_ns())
    if len(ends) == WARM_STEPS:
        print("ready", flush=True)
    if args.burn and len(ends) % args.every == 0 and len(own) < args.own:
        threading.Thread(target=burn, args=(ends[-STEPS],)).start()
    elif started and len(ends) == started + STEPS:
        stopping = time.monotonic_ns()
        tf.profiler.experimental.stop()
        own.append([own.pop(), stopping, time.monotonic_ns(), 0])
        started = 0
    elif args.own and not args.burn and not started and len(ends) % args.every == 0 and len(own) < args.own:
        tf.profiler.experimental.start(os.path.join(os.path.dirname(args.out), "own", str(len(own))))
        own.append(time.monotonic_ns())
        started = len(ends)
    return not os.path.exists(args.until)


class Each(tf.keras.callbacks.Callback):
    """Looks after each batch."""

    def on_train_batch_end(self, batch, logs=None):
        if not step_ended():
            self.model.stop_training = True


def fit(model, data):
    model.compile("sgd", "mse")
    model.fit(data, steps_per_epoch=10**7, epochs=1, verbose=0, callbacks=[Each()])


def dense():
    width, layers, batch = SIZES[args.step_ms]
    x = np.random.default_rng(1).standard_normal((batch * 4, width)).astype("float32")
    parts = [tf.keras.layers.Dense(width, "relu") for _ in range(layers)]
    model = tf.keras.Sequential([*parts, tf.keras.layers.Dense(1)])
    fit(model, tf.data.Dataset.from_tensor_slices((x, x[:, :1])).repeat().batch(batch).prefetch(2))


def calls():
    import stepscope

    @tf.function
    def small(x):
        return x * 2.0 + 1.0

    x = tf.constant(1.0)
    going = True
    while going:
        last = time.monotonic_ns()
        for _ in range(CALLS):
            small(x)
            now = time.monotonic_ns()
            if now - last > 1_000_000:
                gaps.append([last, now])
            last = now
        stepscope.step()
        going = step_ended() and (len(own) < max(1, args.own) or isinstance(own[-1], int) or len(ends) < 2 * args.every)


def inception():
    model = tf.keras.applications.InceptionV3(weights=None, input_shape=(150, 150, 3), classes=10)
    images = np.random.default_rng(1).standard_normal((8, 150, 150, 3)).astype("float32")
    model.compile("sgd", "sparse_categorical_crossentropy")
    data = tf.data.Dataset.from_tensor_slices((images, np.zeros(8, "int32"))).repeat().batch(4).prefetch(2)
    model.fit(data, steps_per_epoch=10**7, epochs=1, verbose=0, callbacks=[Each()])


def video():
    """Five convolutional LSTM cells over ten frames, unrolled: about the ops of a video-prediction model."""
    frames = tf.keras.Input((10, 32, 32, 3))
    cells = [tf.keras.layers.ConvLSTM2D(16, 3, padding="same", return_sequences=True, unroll=True) for _ in range(5)]
    out = frames
    for cell in cells:
        out = cell(out)
    model = tf.keras.Model(frames, tf.keras.layers.Conv3D(3, 1)(out))
    x = np.random.default_rng(1).standard_normal((8, 10, 32, 32, 3)).astype("float32")
    fit(model, tf.data.Dataset.from_tensor_slices((x, x)).repeat().batch(2).prefetch(2))


tf.keras.utils.set_random_seed(1)
turns = turns_of(args.burn)
for _ in range(args.fill):
    threading.Thread(target=fill, daemon=True).start()
{"fit": dense, "calls": calls, "inception": inception, "video": video}[args.kind]()
if started:
    tf.profiler.experimental.stop()
    own.pop()
with open(args.out, "w", encoding="utf-8") as stream:
    json.dump({"ends": ends, "gaps": gaps, "own": own, "calls": CALLS if args.kind == "calls" else 0}, stream)
