"""What the operands of a step's ops hold: copies of one thing, diagonals, zeros; and what work on them is needless."""
