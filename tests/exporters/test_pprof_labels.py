"""pprof's files: sums by phase of the step, functions with their modules, read by classes of the format."""

from __future__ import annotations

import gzip
from collections import Counter
from typing import Any

import pytest
from tests.derive.sessions import MS, SCRIPT, Frame, Job

from stepscope.derive.stacks import session_stacks
from stepscope.exporters.pprof_labels import OUTSIDE, module_of, phases, qualified
from stepscope.readers.stacks import pprof

descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2", reason="needs the package protobuf")
descriptor_pool = pytest.importorskip("google.protobuf.descriptor_pool")
message_factory = pytest.importorskip("google.protobuf.message_factory")
Foreign = Any
"""Messages of classes that are made here."""
# Fields of proto/profile.proto of https://github.com/google/pprof: number, name, type ("" int64), repeated.
FORMAT = {
    "Profile": ("1 sample_type ValueType *;2 sample Sample *;3 mapping Mapping *;4 location Location *;"
                "5 function Function *;6 string_table string *;14 default_sample_type"),
    "ValueType": "1 type;2 unit",
    "Sample": "1 location_id uint64 *;2 value int64 *;3 label Label *",
    "Label": "1 key;2 str;3 num;4 num_unit",
    "Mapping": "1 id uint64;5 filename",
    "Location": "1 id uint64;2 mapping_id uint64;3 address uint64;4 line Line *",
    "Line": "1 function_id uint64;2 line",
    "Function": "1 id uint64;2 name;3 system_name;4 filename;5 start_line",
}  # fmt: skip


def parse(data: bytes) -> Foreign:
    """A profile."""
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="p", syntax="proto3")
    kind = descriptor_pb2.FieldDescriptorProto
    plain = {"int64": kind.TYPE_INT64, "uint64": kind.TYPE_UINT64, "string": kind.TYPE_STRING}
    for name, fields in FORMAT.items():
        message = file.message_type.add(name=name)
        for text in fields.split(";"):
            number, field, *rest = text.split()
            of = next((word for word in rest if word != "*"), "int64")
            made = message.field.add(name=field, number=int(number))
            made.label = kind.LABEL_REPEATED if "*" in rest else kind.LABEL_OPTIONAL
            made.type = plain.get(of, kind.TYPE_MESSAGE)
            if of not in plain:
                made.type_name = f".p.{of}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Profile"))()
    found.ParseFromString(gzip.decompress(data))
    return found


def test_samples_are_summed_by_phase() -> None:
    """Twenty steps with a callback in the second half, sampled in each half, and once before they begin."""
    job = Job(ended_ns=2000 * MS)
    job.execution().every(100 * MS, 20, dur=50 * MS)
    job.callback("Plot").every(100 * MS, 20, dur=45 * MS, start=50 * MS)
    job.samples([at * 100 * MS + 20 * MS for at in range(20)], Frame(SCRIPT, "fit", 9))
    job.samples([at * 100 * MS + 70 * MS for at in range(20)], Frame("/x/site-packages/plots/draw.py", "Plot.draw", 4))
    view = job.view()
    profile = session_stacks.profiles(view.session)[0]
    labels = phases(profile, view)
    assert labels is not None
    read = parse(pprof.write(qualified(profile), labels))
    text = list(read.string_table)
    function = {one.id: text[one.name] for one in read.function}
    leaf = {one.id: function[one.line[0].function_id] for one in read.location}
    sums: Counter[tuple[str, str]] = Counter()
    for sample in read.sample:
        about = {text[label.key]: text[label.str] or label.num for label in sample.label}
        assert about["pid"] == view.session.workers[0].info.pid
        sums[leaf[sample.location_id[0]], about["phase"]] += sample.value[0]
    steady = view.steps.steady_count if view.steps is not None else 0
    assert {text[one.type] for one in read.sample_type} == {"samples", "python"}
    assert sums["train.fit", "compute"] == sums["plots.draw.Plot.draw", "callbacks"] == steady > 10
    assert sums["train.fit", OUTSIDE] == 20 - steady
    assert sum(sums.values()) == 40


def test_modules_by_their_files() -> None:
    """From the folder that holds packages; of a package's own file the package."""
    assert {file: module_of(file) for file in MODULES} == MODULES


MODULES = {
    "/usr/lib/python3.11/threading.py": "threading",
    "/v/lib/python3.11/site-packages/keras/src/trainer.py": "keras.src.trainer",
    "/v/lib/python3.11/site-packages/numpy/__init__.py": "numpy",
    "/home/me/train.py": "train",
    "/home/me/mine/__init__.py": "mine",
    "__init__.py": "",
    "<frozen runpy>": "",
    "libz.so.1": "",
    "": "",
}
