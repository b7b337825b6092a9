"""Clocks of hosts against each other: from four-stamp exchanges and from collectives to offsets with hard bounds."""
