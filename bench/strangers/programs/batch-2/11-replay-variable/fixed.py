"""DQN controller for a building with a heat pump and a battery; transitions live in TensorFlow."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from tensorflow import keras

ZONES = 24
OBS_DIM = 4 * ZONES + 32
ACTIONS = 9
CAPACITY = 200_000
PREFILL = 6_000
BATCH = 64
GAMMA = 0.985
TARGET_EVERY = 200
WARMUP_STEPS = 20
STEPS = 200


class BuildingEnv:
    """Zone temperatures, walls, setpoints and errors plus a price and weather forecast."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.coupling = self.rng.uniform(0.0, 0.02, (ZONES, ZONES)).astype(np.float32)
        self.gain = self.rng.uniform(0.2, 0.6, ZONES).astype(np.float32)
        self.reset()

    def reset(self):
        self.t = 0
        self.soc = 0.5
        self.temp = self.rng.normal(20.0, 1.5, ZONES).astype(np.float32)
        self.wall = self.temp - 1.0
        self.setpoint = self.rng.uniform(19.0, 22.0, ZONES).astype(np.float32)
        return self.observe()

    def observe(self):
        hours = (self.t + np.arange(16, dtype=np.float32)) / 4.0
        price = 0.2 + 0.1 * np.sin(2 * np.pi * hours / 24.0)
        outside = 5.0 + 6.0 * np.sin(2 * np.pi * (hours - 8.0) / 24.0)
        return np.concatenate([
            (self.temp - 20.0) / 5.0, (self.wall - 20.0) / 5.0,
            (self.setpoint - 20.0) / 5.0, self.temp - self.setpoint,
            price, outside / 10.0]).astype(np.float32)

    def step(self, action):
        heat, battery = divmod(int(action), 3)
        outside = 5.0 + 6.0 * np.sin(2 * np.pi * (self.t / 4.0 - 8.0) / 24.0)
        flow = self.coupling @ self.temp - self.coupling.sum(1) * self.temp
        self.temp = self.temp + flow + self.gain * heat + 0.1 * (self.wall - self.temp)
        self.wall = self.wall + 0.02 * (self.temp - self.wall) + 0.03 * (outside - self.wall)
        self.soc = float(np.clip(self.soc + 0.05 * (battery - 1), 0.0, 1.0))
        price = 0.2 + 0.1 * np.sin(2 * np.pi * self.t / 96.0)
        discomfort = float(np.mean((self.temp - self.setpoint) ** 2))
        reward = -0.05 * discomfort - price * (heat + 0.5 * (battery - 1))
        self.t += 1
        done = self.t >= 192
        return self.observe(), np.float32(reward), done


class ReplayMemory:
    def __init__(self, capacity, obs_dim):
        self.capacity = capacity
        self.obs = tf.Variable(tf.zeros([capacity, obs_dim]), trainable=False)
        self.next_obs = tf.Variable(tf.zeros([capacity, obs_dim]), trainable=False)
        self.action = tf.Variable(tf.zeros([capacity], tf.int32), trainable=False)
        self.reward = tf.Variable(tf.zeros([capacity]), trainable=False)
        self.done = tf.Variable(tf.zeros([capacity]), trainable=False)
        self.pos = 0
        self.size = 0

    def extend(self, obs, action, reward, next_obs, done):
        n = len(action)
        rows = np.arange(self.pos, self.pos + n)
        self.obs.scatter_update(tf.IndexedSlices(obs, rows))
        self.next_obs.scatter_update(tf.IndexedSlices(next_obs, rows))
        self.action.scatter_update(tf.IndexedSlices(action, rows))
        self.reward.scatter_update(tf.IndexedSlices(reward, rows))
        self.done.scatter_update(tf.IndexedSlices(done, rows))
        self.pos = (self.pos + n) % self.capacity
        self.size = min(self.size + n, self.capacity)

    def sample(self, batch):
        rows = tf.random.uniform([batch], 0, self.size, dtype=tf.int32)
        return (tf.gather(self.obs, rows),
                tf.gather(self.action, rows),
                tf.gather(self.reward, rows),
                tf.gather(self.next_obs, rows),
                tf.gather(self.done, rows))


def build_q_network():
    return keras.Sequential([
        keras.Input((OBS_DIM,)),
        keras.layers.Dense(384, activation="relu"),
        keras.layers.Dense(384, activation="relu"),
        keras.layers.Dense(ACTIONS),
    ])


def prefill(memory, env, rng):
    obs = env.reset()
    chunk = []
    for _ in range(PREFILL):
        action = rng.integers(ACTIONS)
        nxt, reward, done = env.step(action)
        chunk.append((obs, action, reward, nxt, float(done)))
        obs = env.reset() if done else nxt
        if len(chunk) == 1000:
            o, a, r, n, d = (np.array(c) for c in zip(*chunk))
            memory.extend(o, a.astype(np.int32), r, n, d.astype(np.float32))
            chunk = []


def learn(online, target, optimizer, batch):
    obs, action, reward, next_obs, done = batch
    best = tf.argmax(online(next_obs), axis=1, output_type=tf.int32)
    bootstrap = tf.gather(target(next_obs), best, axis=1, batch_dims=1)
    goal = reward + GAMMA * (1.0 - done) * bootstrap
    with tf.GradientTape() as tape:
        q = tf.gather(online(obs, training=True), action, axis=1, batch_dims=1)
        error = q - goal
        loss = tf.reduce_mean(tf.where(tf.abs(error) < 1.0, 0.5 * error ** 2, tf.abs(error) - 0.5))
    grads = tape.gradient(loss, online.trainable_variables)
    optimizer.apply_gradients(zip(grads, online.trainable_variables))
    return loss


def main():
    keras.utils.set_random_seed(11)
    rng = np.random.default_rng(11)
    env = BuildingEnv(3)
    memory = ReplayMemory(CAPACITY, OBS_DIM)
    prefill(memory, env, rng)
    online, target = build_q_network(), build_q_network()
    target.set_weights(online.get_weights())
    optimizer = keras.optimizers.SGD(1e-3, momentum=0.9)

    obs = env.reset()
    started = None
    total_reward = 0.0
    for step in range(WARMUP_STEPS + STEPS):
        if step == WARMUP_STEPS:
            started = time.perf_counter()
        epsilon = max(0.05, 1.0 - step / 300.0)
        if rng.random() < epsilon:
            action = int(rng.integers(ACTIONS))
        else:
            action = int(tf.argmax(online(obs[None])[0]))
        nxt, reward, done = env.step(action)
        total_reward += float(reward)
        memory.extend(obs[None], np.array([action], np.int32), np.array([reward], np.float32),
                      nxt[None], np.array([done], np.float32))
        obs = env.reset() if done else nxt
        loss = learn(online, target, optimizer, memory.sample(BATCH))
        if step % TARGET_EVERY == 0:
            target.set_weights(online.get_weights())
        if step % 100 == 0:
            print(f"step {step} loss {float(loss):.4f} return {total_reward:.1f}")
    seconds = time.perf_counter() - started
    print(json.dumps({"samples": STEPS * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
