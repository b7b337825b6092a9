"""TensorFlow 1: nobody fills the queue that the training dequeues from after its first 100 elements."""

from _model import ROWS, tf

v1 = tf.compat.v1
v1.disable_eager_execution()
queue = v1.FIFOQueue(200, [tf.float32], [(32, 8)])
fill = queue.enqueue(v1.placeholder_with_default(ROWS, (32, 8)))
rows = queue.dequeue()
weights = v1.get_variable("weights", (8, 1))
train = v1.train.GradientDescentOptimizer(0.01).minimize(v1.reduce_mean(v1.matmul(rows, weights)))
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for _ in range(100):
        session.run(fill)
    while True:
        session.run(train)  # hangs here
