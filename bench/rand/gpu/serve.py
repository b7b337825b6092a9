"""The data server of network_input.py: sends pictures and their masks for as long as somebody reads."""
import socketserver
import time

import segnet

parser = segnet.arguments()
parser.add_argument("host")
parser.add_argument("port", type=int)
parser.add_argument("--rate", type=float, default=0.0, help="MB/s that it sends at most, as a link would let through")
options = parser.parse_args()
images, masks = segnet.pictures(64, segnet.Sizes(options).side)
RECORDS = [image.tobytes() + mask.tobytes() for image, mask in zip(images, masks)]


class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            began, sent = time.perf_counter(), 0
            while True:
                for record in RECORDS:
                    self.wfile.write(record)
                    sent += len(record)
                    if options.rate:
                        time.sleep(max(0.0, began + sent / (1e6 * options.rate) - time.perf_counter()))
        except ConnectionError:
            pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


server = Server((options.host, options.port), Answer)
print("ready", flush=True)
server.serve_forever()
