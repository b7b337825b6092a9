"""One step and the median step: components, what happened in it, where its stacks are, what the machine did."""
