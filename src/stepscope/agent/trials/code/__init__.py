"""Interventions on one Python function of the program: it is found, and its code is exchanged."""
