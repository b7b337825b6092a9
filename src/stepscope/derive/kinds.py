"""What is said of each kind of records (``model.report.record_kinds``), by kind."""

from __future__ import annotations

from stepscope.model.report import record_kinds
from stepscope.wire.kinds import Kind

KINDS: dict[Kind, record_kinds.About] = {kind: record_kinds.KINDS[kind.name.lower()] for kind in Kind}
