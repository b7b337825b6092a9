"""Wasserstein GAN on turbulence fields: four critic steps for one of the generator, a compiled function each."""
import json
import time

import numpy as np
import tensorflow as tf

SIDE, LATENT = 32, 48


def fields(count, seed):
    """Gaussian fields with a power-law spectrum."""
    rng = np.random.default_rng(seed)
    k = np.hypot(*np.meshgrid(np.fft.fftfreq(SIDE), np.fft.fftfreq(SIDE))) + 1e-2
    noise = np.fft.fft2(rng.normal(size=(count, SIDE, SIDE)))
    field = np.fft.ifft2(noise * k ** rng.uniform(-2.5, -1.5, (count, 1, 1))).real
    return (field / field.std((1, 2), keepdims=True)).astype("float32")[..., None]


def make_critic():
    return tf.keras.Sequential([
        tf.keras.layers.Input((SIDE, SIDE, 1)),
        tf.keras.layers.Conv2D(32, 4, strides=2, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(64, 4, strides=2, padding="same", activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(1),
    ])


def make_generator():
    return tf.keras.Sequential([
        tf.keras.layers.Input((LATENT,)),
        tf.keras.layers.Dense(8 * 8 * 48, activation="relu"),
        tf.keras.layers.Reshape((8, 8, 48)),
        tf.keras.layers.Conv2DTranspose(32, 4, strides=2, padding="same", activation="relu"),
        tf.keras.layers.Conv2DTranspose(1, 4, strides=2, padding="same"),
    ])


class WassersteinGAN:
    def __init__(self, clip=0.05):
        self.critic, self.generator = make_critic(), make_generator()
        self.critic_optimizer = tf.keras.optimizers.RMSprop(2e-4)
        self.generator_optimizer = tf.keras.optimizers.RMSprop(2e-4)
        self.clip = clip

    @tf.function
    def train_critic(self, real):
        fake = self.generator(tf.random.normal((tf.shape(real)[0], LATENT)), training=True)
        with tf.GradientTape() as tape:
            gap = tf.reduce_mean(self.critic(fake, training=True)) - tf.reduce_mean(self.critic(real, training=True))
        weights = self.critic.trainable_variables
        self.critic_optimizer.apply_gradients(zip(tape.gradient(gap, weights), weights))
        for weight in weights:
            weight.assign(tf.clip_by_value(weight, -self.clip, self.clip))
        return gap

    @tf.function
    def train_generator(self, count):
        with tf.GradientTape() as tape:
            fake = self.generator(tf.random.normal((count, LATENT)), training=True)
            loss = -tf.reduce_mean(self.critic(fake, training=True))
        weights = self.generator.trainable_variables
        self.generator_optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss


def main():
    tf.keras.utils.set_random_seed(68)
    dataset = tf.data.Dataset.from_tensor_slices(fields(3000, 68)).cache().shuffle(3000, seed=1).repeat()
    batches = iter(dataset.batch(64).prefetch(2))
    gan = WassersteinGAN()
    count = tf.constant(64)
    gan.train_critic(next(batches))
    gan.train_generator(count)
    rounds, critic_steps = 60, 4
    start = time.perf_counter()
    for number in range(rounds):
        for _ in range(critic_steps):
            gap = gan.train_critic(next(batches))
        loss = gan.train_generator(count)
        if number % 20 == 0:
            print(f"round {number}: gap {float(gap):.4f} generator {float(loss):.4f}")
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": rounds * critic_steps * 64, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
