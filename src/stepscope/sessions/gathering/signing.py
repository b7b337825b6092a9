"""Requests between ``run --gather`` and ``gather serve`` carry proof of a common key; the key itself is never sent."""

from __future__ import annotations

import hashlib
import hmac

TIME = "stepscope-time"
"""Header: seconds since 1970."""
DIGEST = "stepscope-digest"
"""Header: SHA-256 of the body, hex."""
MAC = "stepscope-mac"
"""Header: HMAC-SHA256 with the key over method, path, time and digest, hex."""
MAX_APART_S = 600
"""By how much the clocks of two hosts may differ: older requests are not taken again."""


def headers(key: bytes, method: str, path: str, body: bytes, now_s: float) -> dict[str, str]:
    """Headers of a request."""
    digest, stamp = hashlib.sha256(body).hexdigest(), str(int(now_s))
    return {TIME: stamp, DIGEST: digest, MAC: mac(key, method, path, stamp, digest)}


def mac(key: bytes, method: str, path: str, stamp: str, digest: str) -> str:
    """Code of a request. ``path`` is percent-encoded, as it is sent."""
    text = f"stepscope-gather/1\n{method}\n{path}\n{stamp}\n{digest}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def verified(key: bytes, method: str, path: str, given: dict[str, str]) -> bool:
    """Whether a request comes from who has the key; its time and its body are still to be checked."""
    wanted = mac(key, method, path, given.get(TIME, ""), given.get(DIGEST, ""))
    return hmac.compare_digest(wanted.encode(), given.get(MAC, "").encode())
