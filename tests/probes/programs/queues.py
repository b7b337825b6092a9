"""compat.v1: a QueueRunner feeds a training, and a thread of the user's fills a queue of its own."""

import threading

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()

examples = v1.train.input_producer(tf.constant(np.ones((16, 4), "float32")), shuffle=False).dequeue()
batch = v1.train.batch([examples], batch_size=4, capacity=32, num_threads=2)
own = v1.FIFOQueue(1000, tf.float32, shapes=[[]])
fed = v1.placeholder(tf.float32, [])
fill = own.enqueue(fed)
taken = own.dequeue()
w = v1.get_variable("w", [4, 1], initializer=v1.zeros_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(batch, w) - taken), name="loss")
train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")

with v1.Session() as session:
    session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])

    def produce():
        for _ in range(40):
            session.run(fill, feed_dict={fed: 1.0})  # produced

    coordinator = v1.train.Coordinator()
    threads = v1.train.start_queue_runners(session, coordinator)
    producer = threading.Thread(target=produce)
    producer.start()
    for _ in range(40):
        _, value = session.run([train, loss])  # trained
    producer.join()
    coordinator.request_stop()
    coordinator.join(threads)
    print("loss", round(float(value), 5), "filled", session.run(own.size()))
