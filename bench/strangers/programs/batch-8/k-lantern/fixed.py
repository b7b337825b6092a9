"""Weekly scoring of archived sequence models against a fresh set of sensor logs."""
import io
import json
import os
import pathlib
import sys
import tempfile
import time
import zipfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import h5py
import keras
import numpy as np

SETUP = {"tokens": 24, "channels": 16, "width": 352, "blocks": 16, "classes": 7}
SEEDS = (21, 22, 23)
BATCH = 4
BATCHES = 40
SPEC_NAME = "setup.json"
WEIGHTS_NAME = "weights.h5"


def mixing_block(x, tokens, width, index):
    """One token-mixing and one channel-mixing layer pair with shortcuts."""
    y = keras.layers.LayerNormalization(name=f"norm_a{index}")(x)
    y = keras.layers.Permute((2, 1), name=f"flip{index}")(y)
    y = keras.layers.Dense(tokens * 2, activation="gelu", name=f"mix_in{index}")(y)
    y = keras.layers.Dense(tokens, name=f"mix_out{index}")(y)
    y = keras.layers.Permute((2, 1), name=f"back{index}")(y)
    x = keras.layers.Add(name=f"add_a{index}")([x, y])
    y = keras.layers.LayerNormalization(name=f"norm_b{index}")(x)
    y = keras.layers.Dense(width * 2, activation="gelu", name=f"wide{index}")(y)
    y = keras.layers.Dense(width, name=f"narrow{index}")(y)
    return keras.layers.Add(name=f"add_b{index}")([x, y])


def build_model(setup):
    inputs = keras.Input((setup["tokens"], setup["channels"]))
    x = keras.layers.Dense(setup["width"], name="lift")(inputs)
    for index in range(setup["blocks"]):
        x = mixing_block(x, setup["tokens"], setup["width"], index)
    x = keras.layers.LayerNormalization(name="norm_end")(x)
    x = keras.layers.GlobalAveragePooling1D(name="pool")(x)
    outputs = keras.layers.Dense(setup["classes"], activation="softmax", name="head")(x)
    return keras.Model(inputs, outputs)


def write_bundle(model, setup, path):
    """Put the setup and all weights of a model into one archive file."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as store:
        for layer in model.layers:
            if not layer.weights:
                continue
            group = store.create_group(f"layers/{layer.name}/vars")
            for number, value in enumerate(layer.get_weights()):
                group.create_dataset(str(number), data=value)
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(SPEC_NAME, json.dumps(setup))
        archive.writestr(WEIGHTS_NAME, buffer.getvalue())


def fill_layers(model, store):
    """Set the weights of every layer from an open weight store."""
    filled = 0
    for layer in model.layers:
        if not layer.weights:
            continue
        group = store[f"layers/{layer.name}/vars"]
        layer.set_weights([group[str(n)][()] for n in range(len(layer.weights))])
        filled += len(layer.weights)
    return filled


def read_bundle(path):
    """Rebuild a model from its archive file."""
    with zipfile.ZipFile(path) as archive:
        setup = json.loads(archive.read(SPEC_NAME))
        model = build_model(setup)
        with tempfile.TemporaryDirectory(dir=path.parent) as place:
            unpacked = archive.extract(WEIGHTS_NAME, place)
            with h5py.File(unpacked, "r") as store:
                filled = fill_layers(model, store)
    if filled != len(model.weights):
        raise RuntimeError(f"{path.name}: {filled} of {len(model.weights)} weights found")
    return model


def simulate_logs(rng, count, setup):
    """Sensor logs with a slow drift whose shape depends on the class."""
    labels = rng.integers(0, setup["classes"], size=count)
    clock = np.linspace(0, 1, setup["tokens"])[None, :, None]
    tempo = (1 + labels)[:, None, None]
    phases = rng.random((1, 1, setup["channels"])) * 6.0
    logs = np.sin(2 * np.pi * tempo * clock + phases)
    logs = logs + rng.normal(0, 0.5, (count, setup["tokens"], setup["channels"]))
    return logs.astype(np.float32), labels


def make_archives(folder):
    """Stand-in for the model registry: three runs of the same setup."""
    paths = []
    for seed in SEEDS:
        keras.utils.set_random_seed(seed)
        path = folder / f"run_{seed}.bundle"
        write_bundle(build_model(SETUP), SETUP, path)
        paths.append(path)
    keras.utils.clear_session()
    return paths


def score(model, logs, labels):
    """Mean probability of the right class and the class counts of the answers."""
    picked = np.zeros(model.output_shape[-1], dtype=int)
    total = 0.0
    for start in range(0, len(logs), BATCH):
        part = slice(start, start + BATCH)
        probabilities = model.predict_on_batch(logs[part])
        total += float(probabilities[np.arange(len(probabilities)), labels[part]].sum())
        picked += np.bincount(probabilities.argmax(axis=1), minlength=len(picked))
    return total / len(logs), picked


def main():
    begin = time.perf_counter()
    rng = np.random.default_rng(8)
    logs, labels = simulate_logs(rng, BATCH * BATCHES, SETUP)
    with tempfile.TemporaryDirectory() as name:
        for path in make_archives(pathlib.Path(name)):
            model = read_bundle(path)
            mean, picked = score(model, logs, labels)
            size = path.stat().st_size / 2**20
            print(f"{path.stem}: {size:.1f} MiB, p(right) {mean:.4f}, picks {picked}", file=sys.stderr)
    wall = time.perf_counter() - begin
    print(json.dumps({"units": 1, "seconds": round(wall, 3), "wall": round(wall, 3)}))


if __name__ == "__main__":
    main()
