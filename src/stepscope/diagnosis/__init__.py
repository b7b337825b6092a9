"""From a view of a session to its findings: detectors are run, then each pass refines what they found."""
