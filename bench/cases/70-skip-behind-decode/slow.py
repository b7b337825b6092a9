"""Defects on tiles: photos are decoded, the last fifth of them is kept for validation."""
import json
import time

import numpy as np
import tensorflow as tf

COUNT, KEPT, SIDE, EPOCHS = 2400, 480, 96, 6


def photos():
    rng = np.random.default_rng(70)
    pictures = [rng.integers(0, 255, (192, 192, 3), dtype=np.uint8) for _ in range(40)]
    encoded = [tf.io.encode_jpeg(picture).numpy() for picture in pictures]
    return [encoded[i % 40] for i in range(COUNT)], rng.integers(0, 4, COUNT)


def decode(photo, kind):
    picture = tf.io.decode_jpeg(photo, channels=3)
    return tf.image.resize(picture, (SIDE, SIDE)) / 255.0, kind


def main():
    tf.keras.utils.set_random_seed(70)
    tiles = tf.data.Dataset.from_tensor_slices(photos()).map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    validation = tiles.take(COUNT - KEPT)
    train = tiles.skip(COUNT - KEPT)
    train = train.shuffle(KEPT, seed=1).batch(32).prefetch(tf.data.AUTOTUNE)
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(8, 3, strides=4, activation="relu"),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(4),
        ]
    )
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(train.take(2), verbose=0)
    start = time.perf_counter()
    model.fit(train, epochs=EPOCHS, verbose=0)
    seconds = time.perf_counter() - start
    print(model.evaluate(validation.batch(64), verbose=0))
    print(json.dumps({"samples": EPOCHS * KEPT, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
