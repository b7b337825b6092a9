"""What the checker says of the source, joined with what the run measured."""
