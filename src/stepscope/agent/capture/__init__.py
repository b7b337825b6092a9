"""Captures inside the job: detailed traces of some steps, on request.

- ``first_look``: begins one without a request, with ``repeats`` (which calls are steps) and ``look_size``.
- ``commands``: receives the collector's commands on the agent's thread.
- ``orders``: validates a command.
- ``controller``: runs one capture at a time, on a thread that lasts as long as the capture.
- ``leaving``: the end of a job whose capture is being written.
- ``watch``: counts and marks the steps of a capture.
- ``profiler``: runs TensorFlow's own profiler outside the training thread. ``runs``: takes the full trace of a
  Session.run.
"""
