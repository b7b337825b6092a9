"""The data server of network_input.py: sends pictures and their masks for as long as somebody reads."""
import socketserver

import segnet

parser = segnet.arguments()
parser.add_argument("host")
parser.add_argument("port", type=int)
options = parser.parse_args()
images, masks = segnet.pictures(64, segnet.Sizes(options).side)
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


server = Server((options.host, options.port), Answer)
print("ready", flush=True)
server.serve_forever()
