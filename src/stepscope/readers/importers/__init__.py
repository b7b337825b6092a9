"""Importers of other tools' files, recognised by content, not by name: one module per format of op traces, listed in
``registry``; ``readers.stacks.detect`` recognises files of sampled stacks.
"""
