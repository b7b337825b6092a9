"""Two replicas on two logical devices of one process."""

import numpy as np
import tensorflow as tf

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
x = np.random.rand(1024, 32).astype("f4")
rows = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(64).cache().repeat().prefetch(2)
model.fit(rows, steps_per_epoch=150, epochs=2, verbose=0)
