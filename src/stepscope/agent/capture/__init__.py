"""Captures inside of the job: what is traced for some steps because somebody asked for it.

- ``commands``: takes what the collector asks, on the agent's thread.
- ``orders``: what may be asked, checked.
- ``controller``: one capture at a time, on a thread that lives as long as it does.
- ``watch``: counts and marks the steps of a capture.
- ``profiler``: TensorFlow's own profiler, without the training thread. ``runs``: the full trace of a Session.run.
"""
