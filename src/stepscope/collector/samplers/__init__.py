"""Samplers: each reads one part of /proc about once a second and keeps rows until they are stored."""
