"""The ops of a traced step as a graph: their times, what they hand over, the critical path, and how it is drawn."""
