"""The use case ``whatif``: experiments on a job without a change of its code."""
