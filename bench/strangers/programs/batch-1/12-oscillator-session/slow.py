"""Fit masses and springs of a ring of coupled oscillators to observed trajectories.

Differentiable leapfrog integrator, TF1 graph and session.
"""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

N = 24
INNER = 40
DT = 0.05
BATCH = 32
STEPS = 120
REPORT_EVERY = 40


def numpy_rollout(q, p, mass, k, anharm):
    for _ in range(INNER):
        p = p + 0.5 * DT * numpy_force(q, k, anharm)
        q = q + DT * p / mass
        p = p + 0.5 * DT * numpy_force(q, k, anharm)
    return q, p


def numpy_force(q, k, anharm):
    d = np.roll(q, -1, axis=1) - q
    pull = k * d + anharm * d ** 3
    return pull - np.roll(pull, 1, axis=1)


def make_observations(n=4096, seed=5):
    rng = np.random.default_rng(seed)
    mass = rng.uniform(0.6, 1.6, N)
    k = rng.uniform(0.5, 2.0, N)
    q0 = rng.normal(0, 0.5, (n, N))
    p0 = rng.normal(0, 0.5, (n, N))
    q1, p1 = numpy_rollout(q0, p0, mass, k, 0.2)
    q1 = q1 + rng.normal(0, 0.005, q1.shape)
    return [a.astype(np.float32) for a in (q0, p0, q1, p1)]


def force(q, k, anharm):
    d = tf.roll(q, -1, axis=1) - q
    pull = k * d + anharm * d * d * d
    return pull - tf.roll(pull, 1, axis=1)


class OscillatorFit:
    def __init__(self, lr=0.02):
        self.q0 = tf.placeholder(tf.float32, [None, N], "q0")
        self.p0 = tf.placeholder(tf.float32, [None, N], "p0")
        self.q1 = tf.placeholder(tf.float32, [None, N], "q1")
        self.p1 = tf.placeholder(tf.float32, [None, N], "p1")
        with tf.variable_scope("ring"):
            log_mass = tf.get_variable("log_mass", [N], initializer=tf.zeros_initializer())
            log_k = tf.get_variable("log_k", [N], initializer=tf.zeros_initializer())
            anharm = tf.get_variable("anharm", [], initializer=tf.constant_initializer(0.05))
        inv_mass, k = tf.exp(-log_mass), tf.exp(log_k)
        q, p = self.q0, self.p0
        f = force(q, k, anharm)
        for step in range(INNER):
            with tf.name_scope("leapfrog_%d" % step):
                half = p + 0.5 * DT * f
                q = q + DT * half * inv_mass
                f = force(q, k, anharm)
                p = half + 0.5 * DT * f
        self.loss = tf.reduce_mean(tf.square(q - self.q1)) + tf.reduce_mean(tf.square(p - self.p1))
        self.global_step = tf.train.get_or_create_global_step()
        self.train_op = tf.train.AdamOptimizer(lr).minimize(self.loss, global_step=self.global_step)
        self.loss_summary = tf.summary.scalar("loss", self.loss)
        self.anharm = anharm

    def feed(self, data, index):
        return dict(zip((self.q0, self.p0, self.q1, self.p1), (a[index] for a in data)))


class Runner:
    def __init__(self, model, logdir):
        self.model = model
        config = tf.ConfigProto(inter_op_parallelism_threads=2, intra_op_parallelism_threads=2)
        self.sess = tf.Session(config=config)
        self.writer = tf.summary.FileWriter(logdir, self.sess.graph)
        self.options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        self.sess.run(tf.global_variables_initializer())

    def step(self, feed, report):
        metadata = tf.RunMetadata()
        fetches = [self.model.train_op, self.model.loss, self.model.global_step]
        if report:
            fetches.append(self.model.loss_summary)
        out = self.sess.run(fetches, feed_dict=feed, options=self.options, run_metadata=metadata)
        if report:
            self.writer.add_summary(out[3], out[2])
            self.writer.add_run_metadata(metadata, "step%d" % out[2], out[2])
        return out[1]


def main():
    import tempfile
    tf.set_random_seed(1)
    data = make_observations()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as logdir:
        runner = Runner(OscillatorFit(), logdir)
        for _ in range(20):
            runner.step(runner.model.feed(data, rng.integers(0, len(data[0]), BATCH)), False)

        started = time.perf_counter()
        losses = []
        for i in range(1, STEPS + 1):
            index = rng.integers(0, len(data[0]), BATCH)
            losses.append(runner.step(runner.model.feed(data, index), i % REPORT_EVERY == 0))
            if i % REPORT_EVERY == 0:
                print("step %d  loss %.6f" % (i, np.mean(losses[-50:])), flush=True)
        seconds = time.perf_counter() - started
        print("anharmonic term %.4f" % runner.sess.run(runner.model.anharm))
        runner.writer.close()
    print(json.dumps({"samples": STEPS * BATCH, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
