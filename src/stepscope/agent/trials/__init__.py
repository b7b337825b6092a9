"""Trials: interventions in a running job, which change one thing each, and its early end. Loaded only in trials.

An intervention is a family's file with ``targets(effect)``: (module name, attach) pairs as those of a probe. Its
patches lie below those of the probes, which measure what it leaves. ``stepscope.experiments`` has the catalogue.
"""
