"""Nodes of graphs: noted when they are made, read late, written as blocks."""
