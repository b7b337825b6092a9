"""Learns to tell species by their calls: a new head on an encoder of spectrograms that was trained before."""

import json
import sys
import time

import numpy as np
import tensorflow as tf

CLIPS, BATCH, SPECIES = 768, 32, 8
FRAMES, BANDS = 96, 64
EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 20


def recordings(rng):
    """Log spectrograms, one sweep each, and the species that called."""
    species = rng.integers(0, SPECIES, CLIPS)
    time_axis, band = np.mgrid[0 : 1 : FRAMES * 1j, 0 : 1 : BANDS * 1j]
    clips = rng.normal(0, 0.3, (CLIPS, FRAMES, BANDS, 1)).astype(np.float32)
    for clip, kind in zip(clips, species):
        pitch = 0.2 + 0.6 * np.abs(np.sin((kind + 1) * time_axis + rng.uniform(0, 0.3)))
        clip[..., 0] += np.exp(-(((band - pitch) / 0.05) ** 2))
    return clips, species.astype(np.int32)


def encoder():
    """As the archive ships it; its weights are not to change."""
    layers = [tf.keras.layers.Input((FRAMES, BANDS, 1))]
    for width in (16, 32, 48, 64):
        layers.append(tf.keras.layers.Conv2D(width, 3, padding="same", use_bias=False))
        layers.append(tf.keras.layers.BatchNormalization())
        layers.append(tf.keras.layers.ReLU())
        layers.append(tf.keras.layers.MaxPooling2D())
    layers.append(tf.keras.layers.GlobalAveragePooling2D())
    net = tf.keras.Sequential(layers, name="encoder")
    net.trainable = False
    return net


def head(inputs):
    hidden = tf.keras.layers.Dense(64, activation="relu")(inputs)
    hidden = tf.keras.layers.Dropout(0.3)(hidden)
    return tf.keras.layers.Dense(SPECIES)(hidden)


def compiled(model):
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=tf.keras.optimizers.Adam(1e-3), loss=loss, metrics=["accuracy"])
    return model


def main():
    tf.keras.utils.set_random_seed(7)
    clips, species = recordings(np.random.default_rng(7))
    base = encoder()
    inputs = tf.keras.layers.Input(base.output_shape[1:])
    model = compiled(tf.keras.Model(inputs, head(inputs)))
    begin = time.perf_counter()
    features = base.predict(clips, batch_size=BATCH, verbose=0)
    history = model.fit(features, species, batch_size=BATCH, epochs=EPOCHS, verbose=2)
    spent = time.perf_counter() - begin
    print("accuracy", round(history.history["accuracy"][-1], 3))
    print(json.dumps({"samples": CLIPS * EPOCHS, "seconds": round(spent, 3)}))


if __name__ == "__main__":
    main()
