"""The value trial: looks at tensors of the running job, and leaves ops out."""
