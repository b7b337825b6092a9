"""The ledger: where the wall time of a job and of each maker of steps went (docs/decisions/0041)."""
