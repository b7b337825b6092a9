"""Trains the segmentation network on the last of ten frames; all ten are copied to the device, in batches of 64."""
import numpy as np

import segnet

FRAMES = 10


def with_frames_before(image, mask, rng):
    """The picture with the nine frames before it in front of its channels."""
    image, mask = segnet.prepared(image, mask, rng)
    return np.tile(image, (1, 1, FRAMES)), mask


sizes = segnet.Sizes(segnet.arguments().parse_args())
segnet.train(sizes, segnet.batched(segnet.from_memory(sizes, with_frames_before), 64))
