"""Subcellular localisation from amino-acid sequences: residual 1-D CNN, masked mean over residues."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
import keras
from keras import layers

AMINO = "ACDEFGHIKLMNPQRSTVWY"
CLASSES = 10
BATCH = 32
N_WARM = 2 * BATCH
N_TRAIN = 6 * BATCH
EPOCHS = 2
MAX_LEN = 512

MOTIFS = ["KKRK", "SKL", "KDEL", "RRAS", "MLSR", "GPLG", "HHWW", "CCXC".replace("X", "P"), "NPFY", "DEDE"]


def sample_proteins(n, rng):
    lengths = np.clip(rng.lognormal(5.3, 0.55, size=n), 50, MAX_LEN).astype(int)
    labels = rng.integers(0, CLASSES, size=n)
    out = []
    for length, label in zip(lengths, labels):
        seq = rng.choice(list(AMINO), size=length)
        for _ in range(4):
            at = rng.integers(0, length - 5)
            seq[at:at + len(MOTIFS[label])] = list(MOTIFS[label])
        out.append("".join(seq))
    return out, labels.astype(np.int32)


def encode(seqs):
    code = np.zeros(128, np.int32)
    for i, a in enumerate(AMINO):
        code[ord(a)] = i + 1
    return [code[np.frombuffer(s.encode(), np.uint8)] for s in seqs]


def make_dataset(seqs, labels, seed):
    ids = tf.ragged.constant(encode(seqs), dtype=tf.int32)
    ds = tf.data.Dataset.from_tensor_slices((ids, labels))
    ds = ds.map(lambda s, y: (s, y)).cache()
    ds = ds.shuffle(len(labels), seed=seed)
    ds = ds.padded_batch(BATCH, padded_shapes=([MAX_LEN], []), drop_remainder=True)
    return ds.prefetch(tf.data.AUTOTUNE)


@keras.saving.register_keras_serializable("loc")
class MaskedMean(layers.Layer):
    def call(self, x, ids):
        m = keras.ops.cast(keras.ops.not_equal(ids, 0), x.dtype)[..., None]
        return keras.ops.sum(x * m, axis=1) / (keras.ops.sum(m, axis=1) + 1e-6)


@keras.saving.register_keras_serializable("loc")
class MaskPad(layers.Layer):
    def call(self, x, ids):
        return x * keras.ops.cast(keras.ops.not_equal(ids, 0), x.dtype)[..., None]


def build_model(width=64, blocks=2):
    ids = keras.Input((None,), dtype="int32")
    x = MaskPad()(layers.Embedding(len(AMINO) + 1, width)(ids), ids)
    for _ in range(blocks):
        h = layers.Conv1D(width, 7, padding="same", activation="relu")(x)
        h = layers.Conv1D(width, 7, padding="same")(MaskPad()(h, ids))
        x = MaskPad()(layers.Activation("relu")(layers.Add()([x, h])), ids)
    out = layers.Dense(CLASSES)(MaskedMean()(x, ids))
    return keras.Model(ids, out)


def compile_model(model):
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=True,
    )
    return model


def main():
    keras.utils.set_random_seed(21)
    rng = np.random.default_rng(21)
    warm = make_dataset(*sample_proteins(N_WARM, rng), seed=1)
    train = make_dataset(*sample_proteins(N_TRAIN, rng), seed=2)
    model = compile_model(build_model())
    model.fit(warm, epochs=1, verbose=0)
    start = time.perf_counter()
    hist = model.fit(train, epochs=EPOCHS, verbose=0)
    seconds = time.perf_counter() - start
    print("loss", ["%.4f" % v for v in hist.history["loss"]])
    print(json.dumps({"samples": EPOCHS * N_TRAIN, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
