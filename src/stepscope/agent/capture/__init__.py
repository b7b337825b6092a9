"""Captures inside the job: detailed traces of some steps, on request.

- ``commands``: receives the collector's commands on the agent's thread.
- ``orders``: validates a command.
- ``controller``: runs one capture at a time, on a thread that lasts as long as the capture.
- ``watch``: counts and marks the steps of a capture.
- ``profiler``: runs TensorFlow's own profiler outside the training thread. ``runs``: takes the full trace of a
  Session.run.
"""
