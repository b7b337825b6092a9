"""Sends in one of many ways: sends_things.py KIND ENDPOINTS, ENDPOINTS as JSON (see bench/no_requests.py)."""

import asyncio
import atexit
import http.client
import json
import os
import signal
import smtplib
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import xmlrpc.client

kind = sys.argv[1]
at = json.loads(sys.argv[2])
web = f"http://{at['host']}:{at['http']}"


def urllib_get():
    urllib.request.urlopen(f"{web}/bucket/data.tfrecord", timeout=5).read()


def s3_put():
    connection = http.client.HTTPConnection(at["host"], at["http"], timeout=5)
    headers = {"Authorization": "AWS4-HMAC-SHA256 Credential=x", "x-amz-content-sha256": "UNSIGNED-PAYLOAD"}
    connection.request("PUT", "/bucket/checkpoints/model.keras", b"x" * 100_000, headers)
    connection.getresponse().read()


def gcs_upload():
    url = f"{web}/upload/storage/v1/b/bucket/o?uploadType=media&name=model"
    urllib.request.urlopen(urllib.request.Request(url, b"x" * 1000, method="POST"), timeout=5).read()


def mlflow_rest():
    body = json.dumps({"run_id": "1", "key": "loss", "value": 0.5}).encode()
    urllib.request.urlopen(f"{web}/api/2.0/mlflow/runs/log-metric", body, timeout=5).read()


def wandb_rest():
    urllib.request.urlopen(f"{web}/graphql", b'{"query": "mutation UpsertBucket"}', timeout=5).read()


def proxied():
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": web}))
    opener.open("http://s3.example.com/bucket", timeout=5).read()


def postgres():
    client = socket.create_connection((at["host"], at["tcp"]), 5)
    client.sendall(b"\0\0\0\x08\x04\xd2\x16\x2f")
    client.recv(1)


def redis():
    client = socket.socket()
    client.settimeout(5)
    client.connect(("127.0.0.1", at["tcp"]))
    client.sendall(b"*1\r\n$4\r\nPING\r\n")
    client.recv(16)


def six():
    socket.create_connection(("::1", at["tcp"]), 5).sendall(b"six")


def datagram():
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.sendto(b"loss:0.5|g", (at["host"], at["udp"]))
    sender.sendto(b"loss:0.5|g", ("127.0.0.1", at["udp"]))


def datagram_six():
    socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"loss:0.5|g", ("::1", at["udp"]))


def lookup():
    query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x02s3\x07example\x03com\0\0\x01\0\x01"
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(query, (at["host"], at["udp"]))


def event_loop():
    async def send():
        _, writer = await asyncio.wait_for(asyncio.open_connection(at["host"], at["tcp"]), 5)
        writer.write(b"hello")
        await writer.drain()

    asyncio.run(send())


def threads():
    def send():
        try:
            urllib_get()
        except OSError:
            pass

    several = [threading.Thread(target=send) for _ in range(8)]
    [thread.start() for thread in several]
    [thread.join() for thread in several]


def curl():
    subprocess.run(["curl", "-s", "-m", "5", "-T", "/etc/hostname", f"{web}/bucket/hostname"], check=True)


def wget():
    subprocess.run(["wget", "-q", "-T", "5", "-t", "1", "-O", "/dev/null", f"{web}/data"], check=True)


def bare_child():
    code = f"import socket; socket.create_connection({(at['host'], at['tcp'])!r}, 5).sendall(b'x')"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], env={}, check=True)


def forked():
    if not os.fork():
        try:
            postgres()
        finally:
            os._exit(0)
    os.wait()


def late_daemon():
    """Sends for three seconds, which is after the job has ended."""
    if not os.fork():
        os.setsid()
        if not os.fork():
            for _ in range(30):
                time.sleep(0.1)
                try:
                    redis()
                except OSError:
                    pass
        os._exit(0)
    os.wait()


def at_exit():
    atexit.register(urllib_get)


def mail():
    smtplib.SMTP(at["host"], at["tcp"], timeout=5)


def remote_call():
    xmlrpc.client.ServerProxy(web).log("loss", 0.5)


def _unix(path, kind=socket.SOCK_STREAM):
    client = socket.socket(socket.AF_UNIX, kind)
    client.connect(path)
    client.sendall(b"hello")


def unix_file():
    _unix(at["unix"])


def unix_link():
    os.symlink(at["unix"], "link-to-service")
    _unix("link-to-service")


def unix_datagram():
    _unix(at["unix_datagram"], socket.SOCK_DGRAM)


def unix_abstract():
    _unix("\0" + at["abstract"])


def unix_device():
    _unix(at["device"])


def unix_mounted():
    _unix("mounted.sock")


def unix_read_only():
    _unix("read-only/service.sock")


def cloud_files():
    """TensorFlow's file system for gs:// asks the metadata server first."""
    os.environ.update(GCE_METADATA_HOST=f"{at['host']}:{at['http']}", GCE_METADATA_IP=f"{at['host']}:{at['http']}")
    os.environ.update(NO_GCE_CHECK="false", TF_CPP_MIN_LOG_LEVEL="2", GCS_RETRY_CONFIG_MAX_RETRIES="0")
    import tensorflow as tf

    print("TensorFlow", tf.__version__, flush=True)
    signal.alarm(12)
    tf.io.gfile.exists("gs://bucket/data")


def data_service():
    """A worker of tf.data's service registers at a dispatcher, by gRPC in C++."""
    import tensorflow as tf

    print("TensorFlow", tf.__version__, flush=True)
    signal.alarm(8)
    service = tf.data.experimental.service
    service.WorkerServer(service.WorkerConfig(dispatcher_address=f"{at['host']}:{at['tcp']}", dispatcher_timeout_ms=3000))


def tracker_wandb():
    os.environ.update(WANDB_BASE_URL=web, WANDB_API_KEY="x" * 40, WANDB_INIT_TIMEOUT="5", WANDB_HTTP_TIMEOUT="3")
    import wandb

    signal.alarm(15)
    run = wandb.init(project="trial")
    run.log({"loss": 0.5})
    run.finish()


def tracker_mlflow():
    os.environ.update(MLFLOW_HTTP_REQUEST_MAX_RETRIES="1", MLFLOW_HTTP_REQUEST_TIMEOUT="3")
    import mlflow

    mlflow.set_experiment("trial")
    with mlflow.start_run():
        mlflow.log_metric("loss", 0.5)


def tracker_comet():
    os.environ.update(COMET_URL_OVERRIDE=f"{web}/clientlib/", COMET_API_KEY="x" * 25, COMET_TIMEOUT_HTTP="3")
    import comet_ml

    signal.alarm(15)
    experiment = comet_ml.start(project_name="trial")
    experiment.log_metric("loss", 0.5)
    experiment.end()


def tracker_clearml():
    os.environ.update(CLEARML_API_HOST=web, CLEARML_WEB_HOST=web, CLEARML_FILES_HOST=web)
    os.environ.update(CLEARML_API_ACCESS_KEY="x", CLEARML_API_SECRET_KEY="x")
    from clearml import Task

    signal.alarm(15)
    Task.init("trial", "trial").get_logger().report_scalar("loss", "loss", 0.5, 1)


def tracker_neptune():
    import base64

    address = base64.b64encode(json.dumps({"api_address": web, "api_url": web}).encode()).decode()
    os.environ.update(NEPTUNE_API_TOKEN=address, NEPTUNE_PROJECT="a/b")
    import neptune

    signal.alarm(15)
    run = neptune.init_run()
    run["loss"].append(0.5)
    run.stop()


def tracker_swanlab():
    os.environ.update(SWANLAB_API_HOST=f"{web}/api", SWANLAB_API_KEY="x" * 20)
    import swanlab

    signal.alarm(15)
    swanlab.init(project="trial")
    swanlab.log({"loss": 0.5})
    swanlab.finish()


if __name__ == "__main__":
    print("sending", flush=True)
    try:
        globals()[kind]()
        print("sent", flush=True)
    except Exception as error:
        print(f"failed: {type(error).__name__}: {error}", flush=True)
