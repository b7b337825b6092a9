"""Two replicas of a MirroredStrategy on two logical devices; ``mirrored_replicas.py [SLOW]``: that replica computes more."""

import sys

import tensorflow as tf

SLOW = int(sys.argv[1]) if len(sys.argv) > 1 else -1
SIDE = 512


def main():
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        weights = tf.Variable(tf.random.normal([SIDE, SIDE]) / SIDE)
    rows = tf.data.Dataset.from_tensors((tf.ones([SIDE]), tf.ones([SIDE]))).repeat().batch(64)
    batches = iter(strategy.experimental_distribute_dataset(rows))

    @tf.function
    def train_step(x, y):
        def replica(x, y):
            context = tf.distribute.get_replica_context()
            if context.replica_id_in_sync_group == SLOW:
                extra = x
                for number in range(40):
                    extra = tf.matmul(extra, weights, name="extra_%d" % number)
                y += 0.0 * extra
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ weights - y))
            gradient = context.all_reduce(tf.distribute.ReduceOp.SUM, tape.gradient(loss, weights))
            weights.assign_sub(0.01 * gradient)
            return loss

        return strategy.run(replica, args=(x, y))

    for _ in range(600):
        train_step(*next(batches))


main()
