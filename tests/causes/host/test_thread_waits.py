"""What a job that does nothing waits for, from the stacks and system calls of its threads."""

from __future__ import annotations

import pytest

from stepscope.causes.host import thread_waits
from stepscope.model.log.program import RunWaits
from stepscope.tables.hang import ChildEnded, HangFrame, HangThread

LIB = "/usr/lib/python3.11"
TF = "/usr/lib/python3/site-packages/tensorflow/python"
OWN = HangFrame("/job/train.py", "main", 12, own=True)
LOADER = HangFrame("/job/loader.py", "batches", 7, own=True)


def thread(*inner: tuple[str, str], own: HangFrame = OWN, tid: int = 1, pid: int = 1, **more: object) -> HangThread:
    """A thread whose line of the user's has called ``inner``: (file, function), innermost first."""
    frames = tuple(HangFrame(file, function, 1) for file, function in inner)
    return HangThread(pid=pid, tid=tid, state=str(more.get("state", "S")), call=str(more.get("call", "futex")),
                      on=str(more.get("on", "")), frames=(*frames, own))  # fmt: skip


CALL = (f"{TF}/eager/execute.py", "quick_execute")
QUEUE = ((f"{LIB}/threading.py", "Condition.wait"), (f"{LIB}/queue.py", "Queue.get"))


@pytest.mark.parametrize(
    ("waiting", "kind"),
    [
        (thread(*QUEUE), "queue"),
        (thread((f"{TF}/ops/data_flow_ops.py", "FIFOQueue.dequeue")), "queue"),
        (thread((f"{LIB}/threading.py", "Thread.join")), "thread"),
        (thread(), "lock"),
        (thread((f"{LIB}/multiprocessing/pool.py", "ApplyResult.get")), "process"),
        (thread((f"{LIB}/subprocess.py", "Popen.wait"), call="wait4"), "process"),
        (thread(call="read", on="pipe"), "process"),
        (thread(call="recvfrom", on="TCP 10.0.0.2:80"), "network"),
        (thread((f"{LIB}/ssl.py", "SSLSocket.read"), call="poll", on="TCP 10.0.0.2:443"), "network"),
        (thread((f"{TF}/eager/context.py", "Context.ensure_initialized")), "network"),
        (thread((f"{TF}/ops/gen_dataset_ops.py", "next"), (f"{TF}/data/ops/iterator_ops.py", "__next__")), "dataset"),
        (thread(CALL), "framework"),
        (thread(call="clock_nanosleep"), "sleep"),
        (thread((f"{LIB}/selectors.py", "EpollSelector.select"), call="epoll_wait", on="pipe"), "work"),
        (thread(call="recvfrom", on="served TCP 10.0.0.2:5000"), "work"),
        (thread((f"{TF}/training/server_lib.py", "Server.join"), ("/run/arm/probes/servers.py", "serve")), "work"),
        (thread((f"{TF}/data/experimental/service/server_lib.py", "DispatchServer.join")), "work"),
        (thread(call="accept4", on="listening TCP 0.0.0.0:80"), "work"),
        (thread(call="", state="R"), "running"),
    ],
)
def test_kinds(waiting: HangThread, kind: str) -> None:
    """System call and file come first, then the library's function; servers wait for requests."""
    found = thread_waits.of_thread(waiting)
    assert found is not None
    assert found.kind == kind


def test_the_thread_that_makes_the_input_is_the_one_to_look_at() -> None:
    """The main thread waits inside TensorFlow; the generator's thread waits for the network, and the others idle."""
    main, idle = thread(CALL), HangThread(pid=1, tid=3, frames=(HangFrame(f"{LIB}/threading.py", "wait", 1),))
    maker = thread(own=LOADER, tid=2, call="recvfrom", on="TCP 10.0.0.2:80")
    found = thread_waits.root([main, idle, maker])
    assert found is not None
    assert (found.wait.kind, found.wait.frame, found.main.frame) == ("network", LOADER, OWN)
    assert "10.0.0.2:80" in found.text


def test_a_process_that_ended_is_named() -> None:
    """Where the wait is for a process, one that has ended never answers; a wait for a thread has other reasons."""
    ended = [ChildEnded(pid=77, at_ns=5, how="killed by SIGKILL")]
    pool = thread((f"{LIB}/threading.py", "wait"), (f"{LIB}/multiprocessing/pool.py", "IMapIterator.next"))
    found = thread_waits.root([pool], ended)
    assert found is not None
    assert found.text.endswith("process 77 was killed by SIGKILL before")
    other = thread_waits.root([thread(*QUEUE)], ended)
    assert other is not None
    assert (other.wait.kind, other.text) == ("queue", "waits for a queue (get)")


def test_a_child_that_waits_for_the_network() -> None:
    """All processes of the pool live: what they wait for is what the job waits for."""
    pool = thread((f"{LIB}/multiprocessing/pool.py", "IMapIterator.next"))
    found = thread_waits.root([pool, thread(own=LOADER, pid=2, tid=2, call="recvfrom", on="TCP 10.0.0.2:80")])
    assert found is not None
    assert (found.wait.kind, found.wait.thread.pid) == ("network", 2)


def test_a_session_that_takes_from_a_queue() -> None:
    """What the agent says of the run's graph names the op and its line."""
    run = RunWaits(start=1, ops=(("QueueDequeueV2", "fifo_queue_Dequeue", "/job/train.py", 9, "main"),))
    waits = thread((f"{TF}/client/session.py", "BaseSession.run"))
    found = thread_waits.root([waits], run=run)
    assert found is not None
    assert found.wait.kind == "queue"
    assert found.text == "waits for a queue: QueueDequeueV2 fifo_queue_Dequeue, made at train.py:9"
    assert thread_waits.root([HangThread(pid=1, tid=1)]) is None
