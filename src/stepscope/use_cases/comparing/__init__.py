"""Parts of the comparison of sessions: which are meant, their numbers, the differences, what else differs."""
