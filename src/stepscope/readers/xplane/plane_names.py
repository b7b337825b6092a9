"""Kinds of the planes and lines of an XSpace, by their names.

Source: ``xla/tsl/profiler/utils/xplane_schema.cc`` (openxla/xla), names of planes and lines.
"""

from __future__ import annotations

import re

from stepscope.tables.optrace import LineKind, PlaneKind

_DEVICE = re.compile(r"/device:(?P<kind>[A-Za-z]+):(?P<number>\d+)")
_DEVICES = {"GPU": PlaneKind.GPU, "TPU": PlaneKind.TPU}
_PLANES = {
    "/host:metadata": PlaneKind.METADATA,
    "Task Environment": PlaneKind.ENVIRONMENT,
    "/host:CPU": PlaneKind.HOST,
    "/host:python-tracer": PlaneKind.HOST,
    "/host:CUPTI": PlaneKind.HOST,
    "/host:ROCTRACER": PlaneKind.HOST,
}
_DEVICE_LINES = {
    "Steps": LineKind.STEPS,
    "XLA Modules": LineKind.XLA_MODULES,
    "XLA Ops": LineKind.XLA_OPS,
    "Async XLA Ops": LineKind.ASYNC_OPS,
    "XLA TraceMe": LineKind.DEVICE_TRACES,
    "TensorFlow Ops": LineKind.FRAMEWORK_OPS,
    "Framework Ops": LineKind.FRAMEWORK_OPS,
    "TensorFlow Name Scope": LineKind.NAME_SCOPE,
    "Framework Name Scope": LineKind.NAME_SCOPE,
    "Source code": LineKind.SOURCE,
    "Source Code": LineKind.SOURCE,
    "Sparse Core Steps": LineKind.STEPS,
    "Sparse Core Modules": LineKind.XLA_MODULES,
    "Sparse Core Ops": LineKind.XLA_OPS,
}


def plane_kind(name: str) -> PlaneKind:
    """The kind of a plane by its name."""
    device = _DEVICE.match(name)
    if device is not None:
        return _DEVICES.get(device["kind"], PlaneKind.DEVICE)
    return _PLANES.get(name, PlaneKind.OTHER)


def ordinal(name: str) -> int:
    """The device's number; -1 for a plane without a device."""
    device = _DEVICE.match(name)
    return int(device["number"]) if device is not None else -1


def line_kind(name: str, plane: PlaneKind) -> LineKind:
    """The kind of a line by its name."""
    if plane is PlaneKind.HOST:
        return _DEVICE_LINES.get(name, LineKind.THREAD)
    if plane is PlaneKind.GPU and name.startswith("Stream"):
        return LineKind.STREAM
    return _DEVICE_LINES.get(name, LineKind.OTHER)
