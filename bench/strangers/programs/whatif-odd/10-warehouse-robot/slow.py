"""REINFORCE on a warehouse robot simulation: fetch parcels from shelves and bring them to the gate."""
import copy
import json
import time

import keras
import numpy as np
import tensorflow as tf

GRID = 14
ACTIONS = 4
HORIZON = 60
ROBOTS = 8
WARMUP_ROUNDS = 2
ROUNDS = 100


def warehouse_layout(seed=48):
    rng = np.random.default_rng(seed)
    shelves = {}
    for row in range(2, GRID - 2, 3):
        for col in range(1, GRID - 1):
            shelves[f"{row}-{col}"] = {
                "at": [row, col],
                "slots": [{"sku": int(rng.integers(1e6)), "weight": float(rng.uniform(0.1, 9))} for _ in range(3)],
            }
    return {
        "grid": GRID,
        "gate": [0, GRID // 2],
        "shelves": shelves,
        "rewards": {"move": -0.01, "bump": -0.05, "pick": 0.5, "deliver": 1.0},
        "battery": {"capacity": 200, "move": 1, "loaded": 2},
    }


class Warehouse:
    MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))

    def __init__(self, layout, seed):
        self.layout = layout
        self.rng = np.random.default_rng(seed)
        self.reset()

    def settings(self):
        """The layout as this robot sees it; callers may change what they get."""
        return copy.deepcopy(self.layout)

    def reset(self):
        layout = self.settings()
        self.robot = list(layout["gate"])
        self.loaded = False
        self.charge = layout["battery"]["capacity"]
        self.pick_order(layout)
        return self.observe()

    def pick_order(self, layout):
        names = sorted(layout["shelves"])
        self.goal = layout["shelves"][names[int(self.rng.integers(len(names)))]]["at"]

    def observe(self):
        target = self.layout["gate"] if self.loaded else self.goal
        return np.array([
            self.robot[0] / GRID, self.robot[1] / GRID,
            (target[0] - self.robot[0]) / GRID, (target[1] - self.robot[1]) / GRID,
            float(self.loaded), self.charge / 200.0,
        ], "float32")

    def step(self, action):
        layout = self.settings()
        rewards, battery = layout["rewards"], layout["battery"]
        dr, dc = self.MOVES[action]
        row, col = self.robot[0] + dr, self.robot[1] + dc
        self.charge -= battery["loaded"] if self.loaded else battery["move"]
        if not (0 <= row < layout["grid"] and 0 <= col < layout["grid"]):
            return self.observe(), rewards["bump"]
        self.robot = [row, col]
        reward = rewards["move"]
        if not self.loaded and self.robot == self.goal:
            self.loaded = True
            reward += rewards["pick"]
        elif self.loaded and self.robot == layout["gate"]:
            self.loaded = False
            reward += rewards["deliver"]
            self.pick_order(layout)
        return self.observe(), reward


class Agent:
    def __init__(self):
        self.policy = keras.Sequential([
            keras.Input((6,)),
            keras.layers.Dense(96, activation="tanh"),
            keras.layers.Dense(96, activation="tanh"),
            keras.layers.Dense(ACTIONS),
        ])
        self.opt = keras.optimizers.Adam(2e-3)
        self.opt.build(self.policy.trainable_variables)

    @tf.function(reduce_retracing=True)
    def act(self, obs):
        return tf.random.categorical(self.policy(obs), 1)[:, 0]

    @tf.function(reduce_retracing=True)
    def learn(self, obs, actions, gains):
        with tf.GradientTape() as tape:
            nll = tf.nn.sparse_softmax_cross_entropy_with_logits(actions, self.policy(obs))
            loss = tf.reduce_mean(nll * gains)
        grads = tape.gradient(loss, self.policy.trainable_variables)
        self.opt.apply_gradients(zip(grads, self.policy.trainable_variables))
        return loss


def discounted(rewards, gamma=0.97):
    out, acc = np.zeros_like(rewards), np.zeros(rewards.shape[1], "float32")
    for t in reversed(range(len(rewards))):
        acc = rewards[t] + gamma * acc
        out[t] = acc
    return (out - out.mean()) / (out.std() + 1e-6)


def play_round(agent, fleet):
    obs = np.stack([w.reset() for w in fleet])
    seen, done, gained = [], [], []
    for _ in range(HORIZON):
        actions = agent.act(tf.constant(obs)).numpy()
        results = [w.step(int(a)) for w, a in zip(fleet, actions)]
        seen.append(obs)
        done.append(actions)
        gained.append([r for _, r in results])
        obs = np.stack([o for o, _ in results])
    rewards = np.array(gained, "float32")
    gains = discounted(rewards)
    agent.learn(tf.constant(np.concatenate(seen)), tf.constant(np.concatenate(done)), tf.constant(gains.reshape(-1)))
    return float(rewards.sum(0).mean())


def main():
    keras.utils.set_random_seed(49)
    layout = warehouse_layout()
    fleet = [Warehouse(layout, seed=i) for i in range(ROBOTS)]
    agent = Agent()
    for _ in range(WARMUP_ROUNDS):
        play_round(agent, fleet)
    t0 = time.perf_counter()
    returns = [play_round(agent, fleet) for _ in range(ROUNDS)]
    seconds = time.perf_counter() - t0
    print("mean return, first and last rounds: %.2f %.2f" % (np.mean(returns[:5]), np.mean(returns[-5:])))
    print(json.dumps({"samples": ROUNDS * HORIZON * ROBOTS, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
