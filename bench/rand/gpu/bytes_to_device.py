"""Trains the segmentation network on the last of ten frames; all ten are copied to the device, in batches of 64."""
import segnet

sizes = segnet.Sizes(segnet.arguments().parse_args())
segnet.train(sizes, segnet.batched(segnet.from_memory(sizes, frames=10), 64))
