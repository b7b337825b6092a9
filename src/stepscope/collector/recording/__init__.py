"""One recording: from rings, logs and samplers to the session."""
