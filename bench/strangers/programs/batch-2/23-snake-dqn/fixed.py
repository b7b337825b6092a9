"""Double DQN on a vectorised snake-like game, with greedy evaluation and resumable checkpoints."""
import argparse
import json
import logging
import os
import tempfile
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras

log = logging.getLogger("dqn")
GRID, PLANES, ACTIONS = 10, 3, 4
MOVES = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])


class GridGame:
    """Many boards at once: collect food, avoid the wall and the drifting hunter."""

    def __init__(self, boards, seed):
        self.boards, self.rng = boards, np.random.default_rng(seed)
        self.idx = np.arange(boards)
        self.agent, self.food, self.hunter = [self.rng.integers(0, GRID, (boards, 2)) for _ in range(3)]

    def observe(self):
        obs = np.zeros((self.boards, GRID, GRID, PLANES), np.float32)
        for plane, pos in enumerate((self.agent, self.food, self.hunter)):
            obs[self.idx, pos[:, 0], pos[:, 1], plane] = 1.0
        return obs

    def step(self, actions):
        target = self.agent + MOVES[actions]
        wall = ((target < 0) | (target >= GRID)).any(axis=1)
        self.agent = np.clip(target, 0, GRID - 1)
        drift = self.hunter + MOVES[self.rng.integers(0, ACTIONS, self.boards)]
        self.hunter = np.clip(drift, 0, GRID - 1)
        eaten = (self.agent == self.food).all(axis=1)
        caught = (self.agent == self.hunter).all(axis=1)
        reward = eaten * 1.0 - caught * 1.0 - wall * 0.1 - 0.01
        fresh = self.rng.integers(0, GRID, (self.boards, 2))
        self.food = np.where(eaten[:, None], fresh, self.food)
        start = self.rng.integers(0, GRID, (self.boards, 2))
        self.agent = np.where(caught[:, None], start, self.agent)
        return self.observe(), reward.astype(np.float32), caught.astype(np.float32)


class ReplayBuffer(tf.Module):
    def __init__(self, capacity):
        super().__init__()
        self.capacity = capacity
        shape = (capacity, GRID, GRID, PLANES)
        self.obs = tf.Variable(tf.zeros(shape), trainable=False)
        self.next_obs = tf.Variable(tf.zeros(shape), trainable=False)
        self.action = tf.Variable(tf.zeros((capacity,), tf.int32), trainable=False)
        self.reward = tf.Variable(tf.zeros((capacity,)), trainable=False)
        self.done = tf.Variable(tf.zeros((capacity,)), trainable=False)
        self.head = tf.Variable(0, dtype=tf.int32, trainable=False)

    @tf.function
    def add(self, obs, action, reward, next_obs, done):
        rows = (self.head + tf.range(tf.shape(action)[0])) % self.capacity
        for var, value in ((self.obs, obs), (self.next_obs, next_obs), (self.action, action),
                           (self.reward, reward), (self.done, done)):
            var.scatter_update(tf.IndexedSlices(value, rows))
        self.head.assign_add(tf.shape(action)[0])

    def sample(self, n):
        top = tf.minimum(self.head, self.capacity)
        rows = tf.random.uniform([n], 0, top, dtype=tf.int32)
        return [tf.gather(v, rows) for v in (self.obs, self.action, self.reward, self.next_obs, self.done)]


def build_q_network():
    inp = keras.Input((GRID, GRID, PLANES))
    x = keras.layers.Conv2D(16, 3, padding="same", activation="relu")(inp)
    x = keras.layers.Conv2D(16, 3, strides=2, padding="same", activation="relu")(x)
    x = keras.layers.Flatten()(x)
    x = keras.layers.LayerNormalization()(keras.layers.Dense(64, activation="swish")(x))
    value = keras.layers.Dense(1)(keras.layers.Dense(32, activation="swish")(x))
    adv = keras.layers.Dense(ACTIONS)(keras.layers.Dense(32, activation="swish")(x))
    centred = keras.layers.Lambda(lambda a: a - tf.reduce_mean(a, axis=1, keepdims=True))(adv)
    return keras.Model(inp, keras.layers.Add()([value, centred]))


class Agent:
    def __init__(self, cfg):
        self.cfg = cfg
        self.q, self.target = build_q_network(), build_q_network()
        self.target.set_weights(self.q.get_weights())
        self.optimizer = keras.optimizers.Adam(cfg.lr, clipnorm=10.0)
        self.optimizer.build(self.q.trainable_variables)
        self.replay = ReplayBuffer(cfg.capacity)
        self.updates = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def act(self, obs, epsilon):
        greedy = tf.argmax(self.q(obs, training=False), axis=1, output_type=tf.int32)
        n = tf.shape(greedy)[0]
        explore = tf.random.uniform([n]) < epsilon
        return tf.where(explore, tf.random.uniform([n], 0, ACTIONS, tf.int32), greedy)

    @tf.function
    def update(self):
        obs, action, reward, next_obs, done = self.replay.sample(self.cfg.batch)
        best = tf.argmax(self.q(next_obs, training=False), axis=1, output_type=tf.int32)
        boot = tf.gather(self.target(next_obs, training=False), best, batch_dims=1)
        goal = tf.stop_gradient(reward + self.cfg.gamma * (1.0 - done) * boot)
        with tf.GradientTape() as tape:
            chosen = tf.gather(self.q(obs, training=True), action, batch_dims=1)
            err = goal - chosen
            huber = tf.where(tf.abs(err) < 1.0, 0.5 * err ** 2, tf.abs(err) - 0.5)
            loss = tf.reduce_mean(huber)
        grads = tape.gradient(loss, self.q.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.q.trainable_variables))
        for slow_w, w in zip(self.target.trainable_variables, self.q.trainable_variables):
            slow_w.assign(slow_w + 0.01 * (w - slow_w))
        self.updates.assign_add(1)
        return loss


def evaluate(agent, seed, steps=30):
    game = GridGame(64, seed)
    obs, total = game.observe(), 0.0
    for _ in range(steps):
        obs, reward, _ = game.step(agent.act(tf.constant(obs), tf.constant(0.0)).numpy())
        total += float(reward.mean())
    return total


def setup_run(cfg):
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    keras.utils.set_random_seed(cfg.seed)
    return tempfile.mkdtemp(prefix="dqn_run_")


def make_checkpoint(agent, folder):
    ckpt = tf.train.Checkpoint(q=agent.q, target=agent.target, optimizer=agent.optimizer,
                               updates=agent.updates)
    return tf.train.CheckpointManager(ckpt, os.path.join(folder, "ckpt"), max_to_keep=2)


def train(agent, game, manager, steps, cfg):
    obs = game.observe()
    for step in range(1, steps + 1):
        action = agent.act(tf.constant(obs), tf.constant(cfg.epsilon))
        next_obs, reward, done = game.step(action.numpy())
        agent.replay.add(tf.constant(obs), action, reward, next_obs, done)
        obs = next_obs
        loss = agent.update()
        if step % cfg.save_every == 0:
            manager.save(checkpoint_number=agent.updates)
        if step % cfg.eval_every == 0:
            log.info("step %d loss %.4f return %.3f", step, float(loss), evaluate(agent, cfg.seed + 1))


def parse_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1000)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--boards", type=int, default=16)
    ap.add_argument("--capacity", type=int, default=20000)
    ap.add_argument("--save-every", type=int, default=100)
    ap.add_argument("--eval-every", type=int, default=250)
    ap.add_argument("--epsilon", type=float, default=0.1)
    ap.add_argument("--gamma", type=float, default=0.97)
    ap.add_argument("--lr", type=float, default=5e-4)
    ap.add_argument("--seed", type=int, default=3)
    return ap.parse_args()


def main():
    cfg = parse_args()
    folder = setup_run(cfg)
    agent, game = Agent(cfg), GridGame(cfg.boards, cfg.seed)
    manager = make_checkpoint(agent, folder)
    train(agent, game, manager, 20, cfg)
    evaluate(agent, cfg.seed, steps=2)
    manager.save(checkpoint_number=agent.updates)

    start = time.perf_counter()
    train(agent, game, manager, cfg.steps, cfg)
    seconds = time.perf_counter() - start
    tf.train.Checkpoint(replay=agent.replay).write(os.path.join(folder, "replay"))
    print(json.dumps({"samples": cfg.steps * cfg.batch, "seconds": round(seconds, 4)}))


if __name__ == "__main__":
    main()
