"""A task of a TensorFlow 1 cluster: ``session_task.py JOB TASK CLUSTER async|sync [SLOW]``; worker SLOW sleeps 30 ms.

"sync": workers train with a SyncReplicasOptimizer, whose steps wait for the gradients of all.
"""

import json
import sys
import time

import numpy as np
import tensorflow as tf

JOB, TASK, CLUSTER, HOW = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4]
SLOW = int(sys.argv[5]) if len(sys.argv) > 5 else -1
STEPS = 300
v1 = tf.compat.v1


def main():
    v1.disable_eager_execution()
    spec = v1.train.ClusterSpec(CLUSTER)
    config = v1.ConfigProto(device_filters=["/job:ps", "/job:%s/task:%d" % (JOB, TASK)])
    server = v1.train.Server(spec, job_name=JOB, task_index=TASK, config=config)
    if JOB == "ps":
        server.join()
    with v1.device(v1.train.replica_device_setter(cluster=spec, worker_device="/job:worker/task:%d" % TASK)):
        x = v1.placeholder(tf.float32, [None, 256], name="x")
        y = x
        for layer in range(3):
            y = tf.tanh(tf.matmul(y, v1.get_variable("weights_%d" % layer, [256, 256])))
        loss = tf.reduce_mean(tf.square(y - 0.5), name="loss")
        steps = v1.train.get_or_create_global_step()
        optimizer = v1.train.GradientDescentOptimizer(0.01)
        hooks = []
        if HOW == "sync":
            count = len(CLUSTER["worker"])
            optimizer = v1.train.SyncReplicasOptimizer(optimizer, count, total_num_replicas=count)
        train = optimizer.minimize(loss, global_step=steps, name="train")
        if HOW == "sync":
            hooks.append(optimizer.make_session_run_hook(TASK == 0, num_tokens=0))
    batch = np.ones((32, 256), np.float32)
    hooks.append(v1.train.StopAtStepHook(last_step=STEPS if HOW == "sync" else STEPS * len(CLUSTER["worker"])))
    with v1.train.MonitoredTrainingSession(
        master=server.target, is_chief=TASK == 0, config=config, hooks=hooks, stop_grace_period_secs=5
    ) as session:
        while not session.should_stop():
            if TASK == SLOW:
                time.sleep(0.03)
            session.run([train, loss], {x: batch})


main()
