"""One file per detector over a recorded session; ``registry.ALL`` lists them; ``base`` runs them.

A detector tests what must be true of the process if its cause holds, never what a program looks like.
"""
