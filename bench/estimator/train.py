"""Classifies scans of parcels; an Estimator from 2018. Argument: steps between evaluations; none: no evaluation."""
import json
import os
import sys
import tempfile
import time

import numpy as np
import tensorflow as tf

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.WARN)
BATCH = 32
STEPS, EVERY = 300, int(sys.argv[1]) if len(sys.argv) > 1 else 0


def write_records(path, count=2048):
    rng = np.random.default_rng(3)
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(count):
            image = rng.integers(0, 255, (96, 96, 1), dtype=np.uint8)
            label = int(image.mean() > 127.0)
            feature = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[tf.io.encode_png(image).numpy()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def parse(record):
    row = tf.io.parse_single_example(
        record, {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    )
    image = tf.io.decode_png(row["image"], channels=1)
    image = tf.image.convert_image_dtype(image, tf.float32)
    image = tf.image.resize(image, [256, 256], method="bicubic")
    image = tf.image.adjust_contrast(image, 1.4)
    image = tf.image.resize(image, [64, 64])
    return image, row["label"]


def input_fn(path, training):
    dataset = tf.data.TFRecordDataset(path)
    if training:
        dataset = dataset.shuffle(512).repeat()
    return dataset.map(parse).batch(BATCH)


def model_fn(features, labels, mode, params):
    net = tf.compat.v1.layers.conv2d(features, 16, 3, activation=tf.nn.relu)
    net = tf.compat.v1.layers.max_pooling2d(net, 2, 2)
    net = tf.compat.v1.layers.conv2d(net, 32, 3, activation=tf.nn.relu)
    net = tf.compat.v1.layers.flatten(tf.reduce_mean(net, [1, 2], keepdims=True))
    logits = tf.compat.v1.layers.dense(net, 2)
    loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        accuracy = tf.compat.v1.metrics.accuracy(labels, tf.argmax(logits, 1))
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    train_op = tf.compat.v1.train.AdamOptimizer(params["rate"]).minimize(
        loss, global_step=tf.compat.v1.train.get_global_step()
    )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "parcels.tfrecord")
        write_records(path)
        config = tf.estimator.RunConfig(
            model_dir=os.path.join(folder, "model"), save_checkpoints_steps=EVERY or STEPS, tf_random_seed=1
        )
        estimator = tf.estimator.Estimator(model_fn, config=config, params={"rate": 1e-3})
        started = time.perf_counter()
        if EVERY:
            tf.estimator.train_and_evaluate(
                estimator,
                tf.estimator.TrainSpec(lambda: input_fn(path, True), max_steps=STEPS),
                tf.estimator.EvalSpec(lambda: input_fn(path, False), steps=20, throttle_secs=0, start_delay_secs=0),
            )
        else:
            estimator.train(lambda: input_fn(path, True), max_steps=STEPS)
        print(json.dumps({"samples": STEPS * BATCH, "seconds": round(time.perf_counter() - started, 2)}))


if __name__ == "__main__":
    main()
