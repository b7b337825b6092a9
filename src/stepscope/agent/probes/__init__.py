"""One file for each point of a framework that is measured."""
