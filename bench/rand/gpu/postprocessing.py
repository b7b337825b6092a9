"""Trains the segmentation network, and scores 128 pictures after every batch."""
import jax
import numpy as np

import segnet

options = segnet.arguments().parse_args()
sizes = segnet.Sizes(options)
images, masks = segnet.pictures(16 if options.tiny else 128, sizes.side, seed=1)
predict = jax.jit(segnet.scores)
history = []


def overlap(weights):
    """Overlap of each class with its mask, so that one can watch it grow."""
    found = np.asarray(predict(weights, images)).argmax(-1)
    each = []
    for one, mask in zip(found, masks):
        for kind in range(segnet.CLASSES):
            mine, theirs = one == kind, mask == kind
            each.append((mine & theirs).sum() / max(1, (mine | theirs).sum()))
    history.append(float(np.mean(each)))


segnet.train(sizes, segnet.batched(segnet.from_memory(sizes), 64), after=overlap)
