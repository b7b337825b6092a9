"""Trains the segmentation network on pictures that a data server sends, in batches of 64."""
import socket

import numpy as np

import segnet


def received(address, side):
    """Prepared samples, one after the other, as the server sends them."""
    host, port = address.rsplit(":", 1)
    rng = np.random.default_rng(1)
    pixels = side * side
    with socket.create_connection((host, int(port))) as connection, connection.makefile("rb") as stream:
        while True:
            values = np.frombuffer(stream.read(4 * pixels), np.uint8)
            yield segnet.prepared(values[:3 * pixels].reshape(side, side, 3), values[3 * pixels:].reshape(side, side), rng)


parser = segnet.arguments()
parser.add_argument("address", help="HOST:PORT of the data server")
options = parser.parse_args()
sizes = segnet.Sizes(options)
segnet.train(sizes, segnet.batched(received(options.address, sizes.side), 64))
