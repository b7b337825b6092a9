"""What the server answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.testclient import TestClient


def read(client: TestClient, path: str, **params: Any) -> Any:
    """The JSON at an address."""
    answer = client.get(path, params=params or None)
    assert answer.status_code == 200, answer.text
    return answer.json()
