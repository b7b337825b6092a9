"""DDPG on a pendulum: replay of logged transitions, then interaction and one update per step."""
import collections
import json
import os
import random
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

OBS, ACT = 3, 1
BATCH = 128
GAMMA = 0.98
TAU = 0.005
LOGGED = 300_000
STEPS = 600
EPISODE = 200

Transition = collections.namedtuple("Transition", "obs action reward next_obs done")


def observe(theta, omega):
    return np.stack([np.cos(theta), np.sin(theta), omega / 8.0], axis=-1).astype(np.float32)


def physics(theta, omega, torque, dt=0.05):
    angle = (theta + np.pi) % (2 * np.pi) - np.pi
    reward = -(angle ** 2 + 0.1 * omega ** 2 + 0.001 * torque ** 2)
    omega = np.clip(omega + (15.0 * np.sin(theta) + 3.0 * torque) * dt, -8, 8)
    return theta + omega * dt, omega, reward


class Pendulum:
    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.theta, self.omega = self.rng.uniform(-np.pi, np.pi), self.rng.uniform(-1, 1)
        self.t = 0
        return observe(self.theta, self.omega)

    def step(self, action):
        self.theta, self.omega, r = physics(self.theta, self.omega, 2.0 * float(action[0]))
        self.t += 1
        return observe(self.theta, self.omega), r, self.t >= EPISODE


class ReplayBuffer:
    def __init__(self, capacity):
        self.storage = collections.deque(maxlen=capacity)

    def add(self, *items):
        self.storage.append(Transition(*items))

    def sample(self, n):
        picked = random.sample(self.storage, n)
        obs = np.array([t.obs for t in picked], np.float32)
        action = np.array([t.action for t in picked], np.float32)
        reward = np.array([t.reward for t in picked], np.float32)
        next_obs = np.array([t.next_obs for t in picked], np.float32)
        done = np.array([t.done for t in picked], np.float32)
        return obs, action, reward, next_obs, done


def load_log(buffer, rng):
    theta, omega = rng.uniform(-np.pi, np.pi, LOGGED), rng.uniform(-8, 8, LOGGED)
    action = rng.uniform(-1, 1, (LOGGED, ACT)).astype(np.float32)
    theta2, omega2, reward = physics(theta, omega, 2.0 * action[:, 0])
    obs, next_obs = observe(theta, omega), observe(theta2, omega2)
    for i in range(LOGGED):
        buffer.add(obs[i], action[i], float(reward[i]), next_obs[i], 0.0)


def build_actor():
    return keras.Sequential([layers.Input((OBS,)), layers.Dense(128, "relu"), layers.Dense(128, "relu"),
                             layers.Dense(ACT, "tanh")])


def build_critic():
    obs, act = layers.Input((OBS,)), layers.Input((ACT,))
    x = layers.Concatenate()([obs, act])
    for _ in range(2):
        x = layers.Dense(128, "relu")(x)
    return keras.Model([obs, act], layers.Dense(1)(x))


class DDPG:
    def __init__(self):
        self.actor, self.critic = build_actor(), build_critic()
        self.target_actor, self.target_critic = build_actor(), build_critic()
        self.target_actor.set_weights(self.actor.get_weights())
        self.target_critic.set_weights(self.critic.get_weights())
        self.actor_opt, self.critic_opt = keras.optimizers.Adam(3e-4), keras.optimizers.Adam(1e-3)
        self.actor_opt.build(self.actor.trainable_variables)
        self.critic_opt.build(self.critic.trainable_variables)

    @tf.function
    def act(self, obs):
        return self.actor(obs[None])[0]

    @tf.function
    def update(self, obs, action, reward, next_obs, done):
        q_next = self.target_critic([next_obs, self.target_actor(next_obs)])[:, 0]
        y = 0.1 * reward + GAMMA * (1.0 - done) * q_next
        with tf.GradientTape() as tape:
            critic_loss = tf.reduce_mean(tf.square(y - self.critic([obs, action])[:, 0]))
        grads = tape.gradient(critic_loss, self.critic.trainable_variables)
        self.critic_opt.apply(grads, self.critic.trainable_variables)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([v.value for v in self.actor.trainable_variables])
            actor_loss = -tf.reduce_mean(self.critic([obs, self.actor(obs)]))
        grads = tape.gradient(actor_loss, [v.value for v in self.actor.trainable_variables])
        self.actor_opt.apply(grads, self.actor.trainable_variables)
        return critic_loss

    def soft_update(self):
        for net, target in ((self.actor, self.target_actor), (self.critic, self.target_critic)):
            target.set_weights([TAU * w + (1 - TAU) * t
                                for w, t in zip(net.get_weights(), target.get_weights())])


def run(agent, buffer, env, rng, steps):
    obs, total, losses = env.reset(), 0.0, []
    for _ in range(steps):
        action = np.clip(agent.act(obs).numpy() + rng.normal(0, 0.1, ACT), -1, 1).astype(np.float32)
        next_obs, reward, done = env.step(action)
        buffer.add(obs, action, reward, next_obs, 0.0)
        losses.append(agent.update(*buffer.sample(BATCH)))
        agent.soft_update()
        total += reward
        obs = next_obs
        if done:
            print(f"return {total:9.1f}  critic loss {float(tf.reduce_mean(losses)):.4f}", flush=True)
            obs, total, losses = env.reset(), 0.0, []


def main():
    random.seed(0)
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    buffer = ReplayBuffer(1_000_000)
    load_log(buffer, rng)
    agent, env = DDPG(), Pendulum(rng)
    run(agent, buffer, env, rng, 20)
    started = time.perf_counter()
    run(agent, buffer, env, rng, STEPS)
    seconds = time.perf_counter() - started
    print(json.dumps({"samples": STEPS, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
