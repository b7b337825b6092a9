"""Chrome trace events: TensorFlow's and JAX's trace.json(.gz), TF1 timelines, kineto (PyTorch), ONNX Runtime."""

from __future__ import annotations

import re

from stepscope.readers.chrome import trace_events
from stepscope.readers.importers.base import Importer

_GZIP = b"\x1f\x8b"


_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[\s*(?:[\[{\]]|$)|\{\s*(?:[\"}]|$))")
"""Pattern of an array of objects or an object, as far as it is visible."""


def knows(head: bytes) -> bool:
    """Whether a file is JSON or gzip. A protocol buffer may also begin with a line break: the next bytes decide."""
    return head.startswith(_GZIP) or _JSON.match(head) is not None


IMPORTER = Importer(
    format="trace-event",
    title="trace.json(.gz) of Chrome, TensorFlow or PyTorch",
    knows=knows,
    read=trace_events.read_file,
)
