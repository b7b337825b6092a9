"""Chrome trace events: TensorFlow's and JAX's trace.json(.gz), TF1 timelines, kineto (PyTorch), ONNX Runtime."""

from __future__ import annotations

import re

from stepscope.formats.chrome import trace_events
from stepscope.importers.base import Importer

_GZIP = b"\x1f\x8b"


_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[\s*(?:[\[{\]]|$)|\{\s*(?:[\"}]|$))")
"""An array of objects or an object, at least as far as it is shown."""


def knows(head: bytes) -> bool:
    """JSON, or a gzip file. A line break before it is also how a protocol buffer begins: what follows tells."""
    return head.startswith(_GZIP) or _JSON.match(head) is not None


IMPORTER = Importer(
    format="trace-event",
    title="trace.json(.gz) of Chrome, TensorFlow or PyTorch",
    knows=knows,
    read=trace_events.read_file,
)
