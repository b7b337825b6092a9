"""Interventions on what the job reads: batches held, pipelines changed or left alone."""
