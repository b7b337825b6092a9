"""A loop of its own that keeps the outputs of every step for a plot; argument: number of steps."""

import sys

import tensorflow as tf

STEPS = int(sys.argv[1])
inputs = tf.keras.Input((64, 64, 3))
x = tf.keras.layers.Conv2D(16, 3, padding="same", activation="relu")(inputs)
model = tf.keras.Model(inputs, tf.keras.layers.Conv2D(8, 3, padding="same")(x))
optimizer = tf.keras.optimizers.SGD(1e-3)


@tf.function
def train_step(images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """One step."""
    with tf.GradientTape() as tape:
        output = model(images, training=True)
        loss = tf.reduce_mean(tf.square(output))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss, output


def train() -> None:
    """All steps."""
    history = []
    for number in range(STEPS):
        images = tf.random.uniform((48, 64, 64, 3))
        loss, output = train_step(images)
        history.append((loss, output))
        if number % 100 == 0:
            print(number, float(loss), flush=True)
    print("done", len(history), flush=True)


train()
