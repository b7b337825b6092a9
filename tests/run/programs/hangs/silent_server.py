"""A server stops answering, and the generator reads from it without a timeout."""

import socket
import threading

from _model import LABELS, ROWS, compiled, dataset

SERVER = socket.create_server(("127.0.0.1", 0))


def serve() -> None:
    peer, _ = SERVER.accept()
    peer.sendall(b"x" * 100)
    threading.Event().wait()


def batches() -> object:
    with socket.create_connection(SERVER.getsockname()) as connection:
        while True:
            connection.recv(1)  # hangs here
            yield ROWS, LABELS


threading.Thread(target=serve, daemon=True).start()
compiled().fit(dataset(batches), verbose=0)
