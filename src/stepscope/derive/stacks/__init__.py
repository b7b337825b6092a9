"""Profiles of sampled stacks: joined, merged, compared and drawn."""
