"""Heat-pump room model: many small updates over short windows (Keras on JAX)."""
import json
import os
import sys
import time

os.environ["KERAS_BACKEND"] = "jax"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import keras
import numpy as np

WINDOW = 12
CHANNELS = 6
BATCH = 48
BLOCK = 25
BLOCKS_PER_PASS = 100
PASSES = 45
WARM_BLOCKS = 4


def simulate_house(rng, length):
    """Outdoor weather, heating power and the room temperature they lead to."""
    hours = np.arange(length) / 6.0
    outdoor = 6 + 7 * np.sin(2 * np.pi * hours / 24) + rng.normal(0, 0.8, length)
    sun = np.clip(np.sin(2 * np.pi * (hours - 6) / 24), 0, None) * rng.uniform(0.2, 1, length)
    heating = (rng.random(length) < 0.35).astype(np.float64)
    room = np.empty(length)
    room[0] = 19.0
    for t in range(1, length):
        gain = 0.06 * heating[t - 1] + 0.03 * sun[t - 1]
        room[t] = room[t - 1] + gain - 0.004 * (room[t - 1] - outdoor[t - 1])
    clock = np.stack([np.sin(2 * np.pi * hours / 24), np.cos(2 * np.pi * hours / 24)])
    table = np.stack([outdoor / 10, sun, heating, (room - 19) / 4, *clock], axis=1)
    return table.astype(np.float32)


def cut_windows(table, starts):
    offsets = np.arange(WINDOW)
    inputs = table[starts[:, None] + offsets]
    targets = table[starts + WINDOW, 3:4]
    return inputs.reshape(len(starts), WINDOW * CHANNELS), targets


def build_model():
    return keras.Sequential(
        [
            keras.Input((WINDOW * CHANNELS,)),
            keras.layers.Dense(64, activation="tanh"),
            keras.layers.LayerNormalization(),
            keras.layers.Dense(64, activation="tanh"),
            keras.layers.LayerNormalization(),
            keras.layers.Dense(32, activation="tanh"),
            keras.layers.Dense(1),
        ]
    )


def make_block_runner(model, optimizer):
    """Return a function that trains on BLOCK batches and gives back the state."""

    def loss_of(trainable, fixed, inputs, targets):
        outputs, fixed = model.stateless_call(trainable, fixed, inputs, training=True)
        return jnp.mean(jnp.square(outputs - targets)), fixed

    gradient_of = jax.value_and_grad(loss_of, has_aux=True)

    def one_update(state, batch):
        trainable, fixed, slots = state
        (loss, fixed), gradients = gradient_of(trainable, fixed, *batch)
        trainable, slots = optimizer.stateless_apply(slots, gradients, trainable)
        return (trainable, fixed, slots), loss

    step = jax.jit(one_update, donate_argnums=0)

    def run_block(state, inputs, targets):
        losses = []
        for index in range(BLOCK):
            state, loss = step(state, (inputs[index], targets[index]))
            losses.append(loss)
        return state, losses[-1]

    return run_block


def blocks(rng, table, count):
    """Yield blocks of BLOCK batches, each cut from random places."""
    last = len(table) - WINDOW - 1
    for _ in range(count):
        starts = rng.integers(0, last, size=BLOCK * BATCH)
        inputs, targets = cut_windows(table, starts)
        yield (
            inputs.reshape(BLOCK, BATCH, -1),
            targets.reshape(BLOCK, BATCH, 1),
        )


def validate(model, state, inputs, targets):
    outputs, _ = model.stateless_call(state[0], state[1], inputs, training=False)
    return float(jnp.sqrt(jnp.mean(jnp.square(outputs - targets))))


def main():
    begin = time.perf_counter()
    keras.utils.set_random_seed(5)
    rng = np.random.default_rng(5)
    table = simulate_house(rng, 40_000)
    cut = 36_000
    held_starts = np.arange(cut, len(table) - WINDOW - 1, 3)
    held_inputs, held_targets = cut_windows(table, held_starts)

    model = build_model()
    optimizer = keras.optimizers.Adam(1e-3, clipnorm=1.0)
    optimizer.build(model.trainable_variables)
    state = (
        [v.value for v in model.trainable_variables],
        [v.value for v in model.non_trainable_variables],
        [v.value for v in optimizer.variables],
    )
    run_block = make_block_runner(model, optimizer)

    for inputs, targets in blocks(rng, table[:cut], WARM_BLOCKS):
        state, loss = run_block(state, inputs, targets)
    float(loss)

    spent = 0.0
    done = 0
    for turn in range(PASSES):
        started = time.perf_counter()
        for inputs, targets in blocks(rng, table[:cut], BLOCKS_PER_PASS):
            state, loss = run_block(state, inputs, targets)
            done += BLOCK
        recent = float(loss)
        spent += time.perf_counter() - started
        error = validate(model, state, held_inputs, held_targets)
        print(f"pass {turn + 1}: loss {recent:.5f}  held-out rmse {error:.4f}", file=sys.stderr)

    for variable, value in zip(model.trainable_variables, state[0]):
        variable.assign(value)
    wall = time.perf_counter() - begin
    print(json.dumps({"units": done, "seconds": round(spent, 3), "wall": round(wall, 3)}))


if __name__ == "__main__":
    main()
