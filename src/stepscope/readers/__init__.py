"""Files of other tools as columns: traces of ops, stacks, weights. Needs neither a framework nor Linux."""
