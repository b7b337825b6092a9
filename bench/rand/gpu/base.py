"""Trains the segmentation network on pictures in memory, in batches of 64."""
import segnet

sizes = segnet.Sizes(segnet.arguments().parse_args())
segnet.train(sizes, segnet.batched(segnet.from_memory(sizes), 64))
