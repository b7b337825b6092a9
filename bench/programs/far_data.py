"""Serves bytes over TCP: endless streams, pieces on request, and a sink for uploads."""

import socketserver
import sys

BLOCK = bytes(65_536)


class Answer(socketserver.StreamRequestHandler):
    """One line asks: ``stream``, ``piece BYTES`` (again and again), or ``upload``."""

    def handle(self):
        try:
            for line in self.rfile:
                word, *size = line.split()
                if word == b"upload":
                    while self.rfile.read1(1 << 20):
                        pass
                    return
                left = int(size[0]) if size else 1 << 60
                while left > 0:
                    self.wfile.write(BLOCK[: min(left, len(BLOCK))])
                    left -= len(BLOCK)
        except ConnectionError:
            pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


server = Server((sys.argv[1], int(sys.argv[2])), Answer)
print("ready", flush=True)
server.serve_forever()
