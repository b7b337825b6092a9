"""Rebuilds one shard of a search index, over and over."""
import collections
import random
import sys


def rebuild(rnd):
    index = collections.defaultdict(set)
    for document in range(4000):
        for _ in range(40):
            index[rnd.randrange(20000)].add(document)
    return sum(len(found) for found in index.values())


if __name__ == "__main__":
    rnd = random.Random(int(sys.argv[1]))
    while True:
        rebuild(rnd)
