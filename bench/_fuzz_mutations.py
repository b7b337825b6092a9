"""Changes to files that keep most of their structure, so that readers get past the first check.

Each takes a random generator and bytes and gives other bytes. ``changed`` draws one to four of them that fit.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence

Change = Callable[[random.Random, bytes], bytes]

NUMBERS = (0, 1, 7, 8, *(2**bits - less for bits in (7, 8, 16, 31, 32, 63, 64) for less in (1, 0)))
WORDS = tuple(b'|0|-1|1e308|NaN|null|[]|{}|"|\\u0000|\xff\xfe|<script>|../../x|\n|%s'.split(b"|"))
TEXTS = ("", "x" * 300, "\x00", "1")
VALUES: tuple[object, ...] = (None, True, -1, 0, 2**53, 2**63, 2**70, 1e308, -0.5, *TEXTS, [], {}, [[]], {"a": []})
MOST_BYTES = 1 << 20
DEEP = 2_000
DEEP_MARK = "@deep"
DEEP_RATIO = HERE_RATIO = GONE_RATIO = 0.1
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")


def flip(chance: random.Random, data: bytes) -> bytes:
    """A bit of each of some bytes."""
    out = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    return bytes(out)


def cut(chance: random.Random, data: bytes) -> bytes:
    """Some bytes away, or the end."""
    at = chance.randrange(len(data))
    return data[:at] + (data[at + chance.randint(1, 64) :] if chance.random() < 0.7 else b"")


def repeat(chance: random.Random, data: bytes) -> bytes:
    """A part stands there again, or elsewhere."""
    at, to = chance.randrange(len(data)), chance.randrange(len(data))
    part = data[at : at + chance.choice((1, 4, 16, 200))]
    return data[:to] + part * chance.choice((1, 1, 2, 50)) + data[to:]


def number(chance: random.Random, data: bytes) -> bytes:
    """A whole number of 1 to 8 bytes, in either order, at any place."""
    size = chance.choice((1, 2, 4, 8))
    value = (chance.choice(NUMBERS) + chance.choice((-1, 0, 0, 0, 1))) % (1 << 8 * size)
    at = chance.randrange(len(data))
    return data[:at] + value.to_bytes(size, chance.choice(("little", "big"))) + data[at + size :]


def word(chance: random.Random, data: bytes) -> bytes:
    """Something that a text should not hold."""
    at = chance.randrange(len(data))
    return data[:at] + chance.choice(WORDS) + data[at + chance.choice((0, 0, 1, 4)) :]


def digits(chance: random.Random, data: bytes) -> bytes:
    """A number of a text becomes another."""
    found = list(NUMBER.finditer(data))
    if not found:
        return word(chance, data)
    one = chance.choice(found)
    return data[: one.start()] + str(chance.choice(NUMBERS) * chance.choice((1, 1, -1))).encode() + data[one.end() :]


def lines(chance: random.Random, data: bytes) -> bytes:
    """Lines in another order, twice, or away."""
    rows = data.splitlines(keepends=True)
    a, b = chance.randrange(len(rows)), chance.randrange(len(rows))
    what = chance.randrange(3)
    if what == 0:
        rows[a], rows[b] = rows[b], rows[a]
    elif what == 1:
        rows.insert(a, rows[b])
    else:
        del rows[a]
    return b"".join(rows)


def json_value(chance: random.Random, data: bytes) -> bytes:
    """A value of a JSON text becomes another one, goes, comes twice, or becomes very deep."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return word(chance, data)
    text = json.dumps(_changed_value(chance, tree))
    if chance.random() < DEEP_RATIO:
        text = text.replace(json.dumps(DEEP_MARK), "[" * DEEP + "]" * DEEP)
    return text.encode("utf-8", "surrogatepass")


def _changed_value(chance: random.Random, value: object) -> object:
    """The value with a change in it, or in its place."""
    if not isinstance(value, (dict, list)) or not value or chance.random() < HERE_RATIO:
        return chance.choice((*VALUES, DEEP_MARK))
    if isinstance(value, dict):
        key = chance.choice(list(value))
        if chance.random() < GONE_RATIO:
            return {name: one for name, one in value.items() if name != key}
        return {**value, key: _changed_value(chance, value[key])}
    at = chance.randrange(len(value))
    between = [] if chance.random() < GONE_RATIO else [_changed_value(chance, value[at])]
    if chance.random() < GONE_RATIO:
        between.append(value[at])
    return [*value[:at], *between, *value[at + 1 :]]


def protobuf(chance: random.Random, data: bytes) -> bytes:
    """A field of a message, at any depth, becomes another: lengths around it are made right again."""
    fields = _fields(data)
    if not fields:
        return number(chance, data)
    at = chance.randrange(len(fields))
    tag, kind, value = fields[at]
    what = chance.random()
    if kind == 2 and isinstance(value, bytes) and value and what < 0.6:
        value = protobuf(chance, value)
    elif kind == 0 and what < 0.8:
        value = chance.choice(NUMBERS)
    elif kind == 2 and what < 0.75:
        value = chance.choice((b"", b"\xff" * 12, b"\x80" * 20, bytes(chance.randrange(256) for _ in range(20))))
    elif what < 0.9:
        fields.insert(chance.randrange(len(fields)), fields[at])
    else:
        tag = chance.choice((tag + 8, tag ^ 1, 2, 10, 18))
    fields[at] = (tag, kind, value)
    return b"".join(_encoded(*one) for one in fields)


def _fields(data: bytes) -> list[tuple[int, int, int | bytes]]:
    """(tag, wire type, value) of each field; none if the bytes are no message."""
    out: list[tuple[int, int, int | bytes]] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind, width = tag & 7, {1: 8, 5: 4}.get(tag & 7)
        if at < 0 or kind in {3, 4, 6, 7} or tag < 8:
            return []
        value: int | bytes
        if kind == 0:
            value, at = _varint(data, at)
        else:
            size, at = (width, at) if width else _varint(data, at)
            value, at = data[at : at + size], at + size
        if at < 0 or at > len(data):
            return []
        out.append((tag, kind, value))
    return out


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, place behind it); -1 for the place if there is none."""
    value = shift = 0
    while 0 <= at < len(data) and shift < 70:
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
        shift += 7
    return 0, -(1 << 40)


def _encoded(tag: int, kind: int, value: int | bytes) -> bytes:
    head = _number(tag)
    if isinstance(value, int):
        return head + _number(value)
    return head + (_number(len(value)) if kind == 2 else b"") + value


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


BINARY: tuple[Change, ...] = (flip, cut, repeat, number, number)
TEXT: tuple[Change, ...] = (flip, cut, repeat, word, digits, digits, lines)
JSON: tuple[Change, ...] = (json_value, json_value, json_value, digits, word, cut)
PROTOBUF: tuple[Change, ...] = (protobuf, protobuf, protobuf, flip, cut, number)


def changed(chance: random.Random, data: bytes, changes: Sequence[Change]) -> bytes:
    """One to four of the changes, one after the other."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        data = chance.choice(changes)(chance, data or b"\x00")[:MOST_BYTES]
    return data
