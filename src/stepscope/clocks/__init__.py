"""The protocol by which hosts compare their clocks."""
