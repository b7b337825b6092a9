"""Trains the segmentation network on pictures that a data server sends, in batches of 64."""
import argparse
import socket

import numpy as np
import tensorflow as tf

import segnet

BATCH, STEPS = 64, 15
IMAGE, MASK = segnet.SIDE * segnet.SIDE * 3, segnet.SIDE * segnet.SIDE


def received(address):
    """Pictures and masks, one after the other, as the server sends them."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as connection, connection.makefile("rb") as stream:
        while True:
            record = stream.read(IMAGE + MASK)
            if len(record) < IMAGE + MASK:
                return
            values = np.frombuffer(record, np.uint8)
            yield values[:IMAGE].reshape(segnet.SIDE, segnet.SIDE, 3), values[IMAGE:].reshape(segnet.SIDE, segnet.SIDE)


parser = argparse.ArgumentParser()
parser.add_argument("address", help="HOST:PORT of the data server")
address = parser.parse_args().address
shapes = tuple(tf.TensorSpec((segnet.SIDE, segnet.SIDE, *last), tf.uint8) for last in ((3,), ()))
data = tf.data.Dataset.from_generator(lambda: received(address), output_signature=shapes)
data = data.map(segnet.prepared, tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)
segnet.train(segnet.network(), data, STEPS, BATCH)
