"""Temperature field of a cooling plate: sensors are fitted on every step, the heat
equation is imposed at interior points on every PDE_EVERY-th step."""
import json
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

ALPHA = 0.05
WIDTHS = (3, 96, 96, 96, 1)
N_SENSOR = 2048
N_INTERIOR = 1024
PDE_EVERY = 8
PDE_WEIGHT = 0.2
WARM = 24
STEPS = 480


def exact_field(xyt):
    x, y, t = xyt[:, 0], xyt[:, 1], xyt[:, 2]
    slow = np.exp(-2 * np.pi**2 * ALPHA * t) * np.sin(np.pi * x) * np.sin(np.pi * y)
    fast = np.exp(-5 * np.pi**2 * ALPHA * t) * np.sin(2 * np.pi * x) * np.sin(np.pi * y)
    return (slow + 0.5 * fast)[:, None].astype(np.float32)


def sensor_readings(n, rng):
    xyt = rng.random((n, 3)).astype(np.float32)
    return xyt, exact_field(xyt) + rng.normal(0, 0.01, (n, 1)).astype(np.float32)


def make_weights():
    params = []
    with tf.variable_scope("field"):
        for k, (a, b) in enumerate(zip(WIDTHS[:-1], WIDTHS[1:])):
            w = tf.get_variable(f"w{k}", (a, b), initializer=tf.glorot_normal_initializer(seed=k))
            c = tf.get_variable(f"b{k}", (b,), initializer=tf.zeros_initializer())
            params.append((w, c))
    return params


def field(params, xyt):
    h = 2.0 * xyt - 1.0
    for w, c in params[:-1]:
        h = tf.tanh(tf.matmul(h, w) + c)
    w, c = params[-1]
    return tf.matmul(h, w) + c


def heat_residual(params, xyt):
    x, y, t = tf.split(xyt, 3, axis=1)
    u = field(params, tf.concat([x, y, t], axis=1))
    u_x, u_y, u_t = tf.gradients(u, [x, y, t])
    u_xx = tf.gradients(u_x, x)[0]
    u_yy = tf.gradients(u_y, y)[0]
    return u_t - ALPHA * (u_xx + u_yy)


def pde_penalty(params, xyt):
    return PDE_WEIGHT * tf.reduce_mean(tf.square(heat_residual(params, xyt)))


class PlateFit:
    def __init__(self):
        self.xyt = tf.placeholder(tf.float32, (None, 3), "sensor_xyt")
        self.temp = tf.placeholder(tf.float32, (None, 1), "sensor_temp")
        self.inner = tf.placeholder(tf.float32, (None, 3), "interior_xyt")
        self.step = tf.train.get_or_create_global_step()
        self.params = make_weights()
        self.sensor_loss = tf.reduce_mean(tf.square(field(self.params, self.xyt) - self.temp))
        self.loss = self.sensor_loss + self._scheduled_penalty()
        self.train_op = self._optimise()

    def _scheduled_penalty(self):
        due = tf.equal(tf.math.floormod(self.step, PDE_EVERY), 0)
        return tf.cond(due,
                       lambda: pde_penalty(self.params, self.inner) * PDE_EVERY,
                       lambda: tf.constant(0.0))

    def _optimise(self):
        rate = tf.train.exponential_decay(2e-3, self.step, 200, 0.7)
        opt = tf.train.AdamOptimizer(rate)
        pairs = [(g, v) for g, v in opt.compute_gradients(self.loss) if g is not None]
        return opt.apply_gradients(pairs, global_step=self.step)


def feeds(model, rng):
    xyt, temp = sensor_readings(N_SENSOR, rng)
    inner = rng.random((N_INTERIOR, 3)).astype(np.float32)
    return {model.xyt: xyt, model.temp: temp, model.inner: inner}


def grid_error(sess, model, n=24):
    axis = np.linspace(0, 1, n, dtype=np.float32)
    xyt = np.stack(np.meshgrid(axis, axis, [0.2, 0.6]), -1).reshape(-1, 3).astype(np.float32)
    temp = exact_field(xyt)
    return float(sess.run(model.sensor_loss, {model.xyt: xyt, model.temp: temp})) ** 0.5


def main():
    tf.set_random_seed(2)
    rng = np.random.default_rng(4)
    model = PlateFit()
    history = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(WARM):
            sess.run(model.train_op, feeds(model, rng))
        start = time.perf_counter()
        for k in range(STEPS):
            _, loss = sess.run([model.train_op, model.sensor_loss], feeds(model, rng))
            if k % 120 == 0:
                history.append(round(float(loss), 5))
        elapsed = time.perf_counter() - start
        print("sensor loss", history, "grid rmse", round(grid_error(sess, model), 4))
    print(json.dumps({"samples": STEPS * N_SENSOR, "seconds": round(elapsed, 3)}))


if __name__ == "__main__":
    main()
