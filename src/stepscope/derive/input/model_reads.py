"""The agent's reads of tf.data's live model, decoded."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.model.log.events import IteratorModel
from stepscope.readers import iterator_model
from stepscope.readers.protobuf.codec import ProtoError

if TYPE_CHECKING:
    from stepscope.model.session.session import Worker
    from stepscope.readers.iterator_model import IteratorModelData


class Read(Struct, frozen=True, kw_only=True):
    """One read of the model. ``executions``: calls of the consumer that had ended by then; ``cpu_ns``: CPU time of the
    process, 0 if unknown."""

    at: int
    iterator: int
    executions: int
    data: IteratorModelData
    cpu_ns: int = 0

    @property
    def elements(self) -> int:
        """Batches delivered so far."""
        root = self.data.nodes.get(self.data.output)
        return root.num_elements if root else 0


def read_all(worker: Worker) -> tuple[list[Read], list[str]]:
    """The reads in order of time, and a message about those that are damaged."""
    reads, broken = [], []
    for event in worker.all(IteratorModel):
        if not event.proto:
            continue
        try:
            data = iterator_model.parse(base64.b64decode(event.proto, validate=True))
        except (ValueError, ProtoError) as error:  # ValueError: not base64
            broken.append(f"a read of tf.data's model could not be used: {error}")
            continue
        reads.append(
            Read(at=event.at, iterator=event.iterator, executions=event.executions, data=data, cpu_ns=event.cpu_ns)
        )
    return sorted(reads, key=lambda r: r.at), broken
