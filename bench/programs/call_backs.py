"""Python that native code calls, again and again, on two threads, until it is ended: sorted, map, re, json, repr ..."""

import functools
import json
import re
import threading


class Node:
    """A tree whose text and whose making call Python back."""

    def __init__(self, number, depth):
        self.number = number
        self.kids = [Node(number + i, depth - 1) for i in range(2)] if depth else []

    def __repr__(self):
        return "N%d%s" % (self.number, "".join(map(repr, self.kids)))


class Compared:
    """Its comparison and its hash are Python's."""

    @property
    def value(self):
        return key(3)

    def __lt__(self, other):
        return self.value < other.value

    def __hash__(self):
        return key(5)

    def __eq__(self, other):
        return self.value == other.value


def leaf(x):
    total = 0
    for i in range(40):
        total += i * x
    return total


def key(x):
    return leaf(x) + 1


def keys(count):
    for i in range(count):
        yield key(i)


def by_map():
    return list(map(lambda x: sum(keys(x % 9)), range(60)))


def by_pattern():
    return re.sub("[a-z]", lambda found: str(key(ord(found[0]))), "the quick brown fox" * 6)


def by_sort():
    return sorted(range(80), key=key)


def by_json():
    return json.dumps([{"a": i} for i in range(30)], default=str, indent=1)


def by_text():
    return repr(Node(1, 5))


def by_reduce():
    return functools.reduce(lambda a, b: a + key(b), range(60))


def by_comparison():
    return min([*{Compared() for _ in range(20)}, Compared()])


def work():
    while True:
        for one in (by_map, by_pattern, by_sort, by_json, by_text, by_reduce, by_comparison):
            one()


threading.Thread(target=work, daemon=True).start()
work()
