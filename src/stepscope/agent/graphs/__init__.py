"""Graph nodes: noted when they are made, read later, written as blocks."""
