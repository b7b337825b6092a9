"""Keeps one CPU busy until it is ended: SHA-256 over and over."""

import hashlib

data = bytes(4096)
while True:
    data = hashlib.sha256(data).digest() * 128
