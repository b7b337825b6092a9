"""DQN with prioritised replay on a small power-storage control task."""
import json
import time

import numpy as np
import tensorflow as tf

CAPACITY = 400_000
PREFILL = 250_000
BATCH = 64
STEPS = 5000
WARMUP = 60
GAMMA = 0.98
ALPHA = 0.6
BETA = 0.4
SYNC_EVERY = 250
ACTIONS = 5
FEATURES = 6


class StorageEnv:
    """A battery that buys and sells energy against a noisy daily price."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.moves = np.linspace(-0.2, 0.2, ACTIONS)
        self.reset()

    def reset(self):
        self.t = 0
        self.level = float(self.rng.random())
        self.noise = 0.0
        return self._observe()

    def _price(self, t):
        return 1.0 + 0.5 * np.sin(2 * np.pi * t / 48.0) + self.noise

    def _observe(self):
        phase = 2 * np.pi * self.t / 48.0
        return np.array([self.level, self._price(self.t), np.sin(phase), np.cos(phase), self.noise, self.t / 192.0],
                        np.float32)

    def step(self, action):
        wanted = self.moves[action]
        new_level = min(max(self.level + wanted, 0.0), 1.0)
        moved = new_level - self.level
        reward = -moved * self._price(self.t) - 0.02 * abs(moved)
        self.level = new_level
        self.noise = 0.9 * self.noise + 0.05 * self.rng.standard_normal()
        self.t += 1
        return self._observe(), reward, self.t >= 192


class PrioritisedReplay:
    """Proportional prioritised experience replay."""

    def __init__(self, capacity, seed=1):
        self.capacity = capacity
        self.rng = np.random.RandomState(seed)
        self.obs = np.zeros((capacity, FEATURES), np.float32)
        self.next_obs = np.zeros((capacity, FEATURES), np.float32)
        self.actions = np.zeros(capacity, np.int32)
        self.rewards = np.zeros(capacity, np.float32)
        self.dones = np.zeros(capacity, np.float32)
        self.priorities = np.zeros(capacity, np.float32)
        self.max_priority = 1.0
        self.size = 0
        self.cursor = 0

    def add(self, obs, action, reward, next_obs, done):
        i = self.cursor
        self.obs[i], self.next_obs[i] = obs, next_obs
        self.actions[i], self.rewards[i], self.dones[i] = action, reward, done
        self.priorities[i] = self.max_priority
        self.cursor = (i + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def sample(self, batch):
        scaled = self.priorities[: self.size] ** ALPHA
        probabilities = scaled / scaled.sum()
        rows = self.rng.choice(self.size, batch, p=probabilities)
        weights = (self.size * probabilities[rows]) ** -BETA
        weights = (weights / weights.max()).astype(np.float32)
        return rows, (self.obs[rows], self.actions[rows], self.rewards[rows], self.next_obs[rows],
                      self.dones[rows], weights)

    def update(self, rows, errors):
        self.priorities[rows] = np.abs(errors) + 1e-3
        self.max_priority = max(self.max_priority, float(self.priorities[rows].max()))


def build_network():
    return tf.keras.Sequential([
        tf.keras.Input((FEATURES,)),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dense(ACTIONS),
    ])


class Agent:
    def __init__(self):
        self.online = build_network()
        self.target = build_network()
        self.sync()
        self.optimizer = tf.keras.optimizers.Adam(5e-4)
        self.optimizer.build(self.online.trainable_variables)

    def sync(self):
        self.target.set_weights(self.online.get_weights())

    @tf.function(reduce_retracing=True)
    def best_action(self, obs):
        return tf.argmax(self.online(obs[None]), axis=1)[0]

    @tf.function
    def learn(self, obs, actions, rewards, next_obs, dones, weights):
        following = tf.argmax(self.online(next_obs), axis=1)
        next_q = tf.gather(self.target(next_obs), following, batch_dims=1)
        goal = rewards + GAMMA * (1.0 - dones) * next_q
        with tf.GradientTape() as tape:
            q = tf.gather(self.online(obs, training=True), actions, batch_dims=1)
            errors = goal - q
            loss = tf.reduce_mean(weights * tf.where(tf.abs(errors) < 1, 0.5 * errors**2, tf.abs(errors) - 0.5))
        grads = tape.gradient(loss, self.online.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.online.trainable_variables))
        return errors


def prefill(env, memory, steps):
    obs = env.reset()
    for action in env.rng.integers(ACTIONS, size=steps):
        next_obs, reward, done = env.step(action)
        memory.add(obs, action, reward, next_obs, done)
        obs = env.reset() if done else next_obs
    return obs


def main():
    tf.random.set_seed(0)
    env, memory, agent = StorageEnv(), PrioritisedReplay(CAPACITY), Agent()
    obs = prefill(env, memory, PREFILL)
    epsilon, total, returns = 1.0, 0.0, []
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            started = time.perf_counter()
        explore = env.rng.random() < epsilon
        action = int(env.rng.integers(ACTIONS)) if explore else int(agent.best_action(tf.constant(obs)))
        next_obs, reward, done = env.step(action)
        memory.add(obs, action, reward, next_obs, done)
        total += reward
        obs = next_obs
        if done:
            returns.append(total)
            total, obs = 0.0, env.reset()
        rows, batch = memory.sample(BATCH)
        errors = agent.learn(*map(tf.constant, batch))
        memory.update(rows, errors.numpy())
        epsilon = max(0.05, epsilon * 0.999)
        if step % SYNC_EVERY == 0:
            agent.sync()
    seconds = time.perf_counter() - started
    print("episodes", len(returns), "mean return of the last five", round(float(np.mean(returns[-5:])), 3))
    print(json.dumps({"samples": STEPS, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
