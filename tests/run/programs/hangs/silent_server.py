"""A server stops answering, and the job reads from it without a timeout. Plain Python."""

import socket
import threading

import stepscope

SERVER = socket.create_server(("127.0.0.1", 0))


def serve() -> None:
    peer, _ = SERVER.accept()
    peer.sendall(b"x" * 100)
    threading.Event().wait()


threading.Thread(target=serve, daemon=True).start()
with socket.create_connection(SERVER.getsockname()) as connection:
    while True:
        connection.recv(1)  # hangs here
        stepscope.step()
        sum(range(1_000_000))
