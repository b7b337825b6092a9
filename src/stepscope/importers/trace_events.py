"""Chrome trace events: TensorFlow's and JAX's trace.json(.gz), TF1 timelines, kineto (PyTorch), ONNX Runtime."""

from __future__ import annotations

from stepscope.formats import trace_events
from stepscope.importers.base import Importer

_GZIP = b"\x1f\x8b"


def knows(head: bytes) -> bool:
    """JSON, or a gzip file."""
    return head.startswith(_GZIP) or head.lstrip()[:1] in {b"[", b"{"}


IMPORTER = Importer(
    format="trace-event",
    title="trace.json(.gz) of Chrome, TensorFlow or PyTorch",
    knows=knows,
    read=trace_events.read_file,
)
