"""One step compared with the median step: its components, what happened in it, where its stacks are, what the machine did."""
