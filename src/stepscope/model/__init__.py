"""Data types shared by all layers: log lines, sessions, reports, REST answers."""
