"""Writes a copy of a session in which pseudonyms stand for what it says of its user.

JSON and Parquet are rewritten, text by text; every other file is left out, and so are the copies of sources and the
reports, which are made again from the copy.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as pq

from stepscope.store import bundle, stacks, whole_files
from stepscope.tables import layout
from stepscope.tables.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.store.pseudonyms import Pseudonyms

MAX_JSON_BYTES = 256 << 20
_ARGUMENTS = frozenset({"command", "argv"})
_NAMES = frozenset({"cwd", "run_dir", "joint", "user", "team", "project", "commit"})
_KEPT = frozenset({"key", "worker", "id", "request", "cpu", "machine", "t"})
"""Fields whose text is made by stepscope, or names a product."""
_BINARY = "proto"
"""Field with tf.data's model, in base64."""
_READABLE = re.compile(rb"[A-Za-z_]\w{3,}")
_REPORTS = "report"


def copy(session: Path, target: Path, names: Pseudonyms) -> list[str]:
    """Write the copy into the folder ``target``; return the names of files that were left out.

    Args:
        session: folder of the session.
        target: folder of the copy.
        names: those that have learnt what the session holds (``learn``).

    Raises:
        SessionError: a file cannot be read.
        OSError: no space, or no rights.
    """
    left_out = []
    for name in bundle.portable_names(session):
        source, made = session / name, target / name
        if name.startswith((layout.SOURCES, _REPORTS)):
            continue
        if source.suffix not in (".json", ".parquet"):
            left_out.append(name)
            continue
        made.parent.mkdir(parents=True, exist_ok=True)
        try:
            if source.suffix == ".json":
                read = _value(json.loads(bundle.DirectoryFiles(session).read(name, MAX_JSON_BYTES)), names)
                if name == layout.MANIFEST and isinstance(read, dict):
                    read["name"] = target.name.removesuffix(layout.SUFFIX)
                made.write_text(json.dumps(read, indent=1), "utf-8")
            else:
                _table(source, made, names)
        except (ValueError, pa.ArrowException) as error:
            raise SessionError(f"{session}/{name}: cannot be read, so it cannot be redacted: {error}") from error
    return left_out


def learn(session: Path, names: Pseudonyms) -> None:
    """Names of functions of public files, wherever the session holds them; a log that cannot be read fails later."""
    for name in bundle.portable_names(session):
        if name.endswith(".parquet"):
            with contextlib.suppress(ValueError, pa.ArrowException), pq.ParquetFile(session / name) as file:
                columns = [field.name for field in file.schema_arrow if pa.types.is_binary(field.type)]
                for column in file.read(columns).columns if columns else ():
                    for data in column.to_pylist():
                        record = json.loads(data or b"{}")
                        if isinstance(record, dict) and record.get("file"):
                            names.learn(str(record["file"]), f"{record.get('function', '')} {record.get('name', '')}")


def _value(value: object, names: Pseudonyms, key: str = "") -> object:
    """A JSON value; ``key`` is the field that holds it."""
    if isinstance(value, str):
        return _text(value, names, key)
    if isinstance(value, list):
        return [_value(one, names, key) for one in value]
    if isinstance(value, dict):
        return {names.text(str(name)): _value(one, names, str(name)) for name, one in value.items()}
    return value


def _text(text: str, names: Pseudonyms, key: str) -> str:
    if key in _KEPT:
        return text
    if key == _BINARY:
        return _model(text, names)
    if key in _ARGUMENTS:
        return names.argument(text)
    return names.path(text) if key in _NAMES else names.text(text)


def _model(text: str, names: Pseudonyms) -> str:
    """tf.data's model if all that can be read in it is public, else none."""
    readable = (word.decode() for word in _READABLE.findall(base64.b64decode(text)))
    return text if all(names.is_public(word) for word in readable) else ""


def _table(source: Path, target: Path, names: Pseudonyms) -> None:
    """Row group by row group: readers ask for them by number."""
    with pq.ParquetFile(source) as file:
        schema = file.schema_arrow
        metadata = {key: _metadata(key, text, names) for key, text in (schema.metadata or {}).items()}
        schema = schema.with_metadata(metadata)
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            for number in range(file.num_row_groups):
                group = file.read_row_group(number)
                columns = [_column(group.column(at), field, names) for at, field in enumerate(schema)]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=max(1, group.num_rows))
    if whole_files.MARK.encode() in metadata:
        target.write_bytes(whole_files.sealed(target.read_bytes()))


def _metadata(key: bytes, text: bytes, names: Pseudonyms) -> bytes:
    """A file's metadata is JSON; the head of a stack file is packed (``store.stacks``)."""
    if key.decode() == stacks.HEAD_KEY:
        head = _value(json.loads(zlib.decompress(base64.b64decode(text))), names)
        return base64.b64encode(zlib.compress(json.dumps(head).encode(), 1))
    try:
        value = json.loads(text)
    except ValueError:
        return names.text(text.decode("utf-8", "replace")).encode()
    return json.dumps(_value(value, names)).encode()


def _column(column: pa.ChunkedArray, field: pa.Field, names: Pseudonyms) -> pa.ChunkedArray | pa.Array:
    if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
        return pa.array([None if text is None else names.text(text) for text in column.to_pylist()], field.type)
    if pa.types.is_binary(field.type):
        return pa.array([_payload(data, names) for data in column.to_pylist()], field.type)
    if not _is_number(field.type):
        raise ValueError(f"column {field.name} is of type {field.type}")
    return column


def _is_number(kind: pa.DataType) -> bool:
    of = kind.value_type if pa.types.is_list(kind) else kind
    return bool(pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_boolean(of) or pa.types.is_null(of))


def _payload(data: bytes | None, names: Pseudonyms) -> bytes | None:
    """A line of a log."""
    return None if data is None else json.dumps(_value(json.loads(data), names), separators=(",", ":")).encode()


def found_again(folder: Path, hidden: set[str], words_of: Callable[[str], set[str]]) -> dict[str, set[str]]:
    """Files of a redacted session that hold a hidden word all the same, with these words. ``words_of``: the words of a
    text.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (hits := _words(path, words_of) & hidden):
            found[path.relative_to(folder).as_posix()] = hits
    return found


def _words(path: Path, words_of: Callable[[str], set[str]]) -> set[str]:
    if path.suffix != ".parquet":
        return words_of(path.read_text("utf-8", "replace"))
    table = pq.read_table(path)
    found: set[str] = set()
    for column in table.columns:
        if not _is_number(column.type):
            for one in cast("list[str | bytes | None]", column.to_pylist()):
                text = one.decode("utf-8", "replace") if isinstance(one, bytes) else one or ""
                found |= words_of(text)
    return found
