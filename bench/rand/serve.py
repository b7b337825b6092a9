"""The data server of network_input.py: sends pictures and their masks for as long as somebody reads."""
import socketserver
import sys

import segnet

images, masks = segnet.pictures(256)
RECORDS = [image.tobytes() + mask.tobytes() for image, mask in zip(images, masks)]


class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            while True:
                for record in RECORDS:
                    self.wfile.write(record)
        except ConnectionError:
            pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


server = Server((sys.argv[1], int(sys.argv[2])), Answer)
print("ready", flush=True)
server.serve_forever()
