"""Sessions as the server shows them: a catalogue, those that are open, and queries."""
