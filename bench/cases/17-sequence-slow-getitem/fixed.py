"""Next-move prediction for a board game; positions are replayed from move lists."""
import json
import time

import numpy as np
import tensorflow as tf
from tensorflow import keras

Loader = getattr(keras.utils, "PyDataset", None) or keras.utils.Sequence
SIZE = 9


def play(rng, length):
    moves = rng.permutation(SIZE * SIZE)[:length]
    return [(int(m) // SIZE, int(m) % SIZE) for m in moves]


def liberties(board, i, j):
    """Free points around a stone and the stones of its colour that touch it."""
    colour = board[i][j]
    if not colour:
        return 0
    free, seen, open_points = set(), {(i, j)}, [(i, j)]
    while open_points:
        a, b = open_points.pop()
        for c, d in ((a - 1, b), (a + 1, b), (a, b - 1), (a, b + 1)):
            if not (0 <= c < SIZE and 0 <= d < SIZE):
                continue
            if board[c][d] == 0:
                free.add((c, d))
            elif board[c][d] == colour and (c, d) not in seen:
                seen.add((c, d))
                open_points.append((c, d))
    return len(free)


class Games(Loader):
    """Batches of positions; each was set up once by replaying its game."""

    def __init__(self, games, batch):
        super().__init__()
        self.games = games
        self.batch = batch
        planes, moves = zip(*(self.position(game) for game in games))
        self.planes = np.stack(planes)
        self.moves = np.array(moves, "int32")

    def __len__(self):
        return len(self.games) // self.batch

    def position(self, moves):
        board = [[0] * SIZE for _ in range(SIZE)]
        player = 1
        for row, column in moves[:-1]:
            board[row][column] = player
            player = -player
        planes = np.zeros((SIZE, SIZE, 3), "float32")
        for i in range(SIZE):
            for j in range(SIZE):
                planes[i, j, 0] = board[i][j] == player
                planes[i, j, 1] = board[i][j] == -player
                planes[i, j, 2] = liberties(board, i, j) / 8
        row, column = moves[-1]
        return planes, row * SIZE + column

    def __getitem__(self, index):
        chosen = slice(index * self.batch, (index + 1) * self.batch)
        return self.planes[chosen], self.moves[chosen]


def network():
    model = keras.Sequential([
        keras.layers.Input((SIZE, SIZE, 3)),
        keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
        keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(SIZE * SIZE),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def main():
    keras.utils.set_random_seed(37)
    rng = np.random.default_rng(37)
    games = [play(rng, int(rng.integers(8, 70))) for _ in range(2560)]
    data = Games(games, 64)
    model = network()
    model.fit(Games(games[:128], 64), verbose=0)
    epochs = 50
    start = time.perf_counter()
    model.fit(data, epochs=epochs, verbose=2)
    seconds = time.perf_counter() - start
    print(json.dumps({"samples": epochs * len(data) * 64, "seconds": round(seconds, 3)}))


if __name__ == "__main__":
    main()
