"""Children of the job, and the ways in which a process can end."""

from __future__ import annotations

import signal

import pytest

from stepscope.model.log.events import ChildStarted, Name, ProcessEnded, ThreadSeen
from stepscope.wire.kinds import Kind

from .conftest import Armed


def test_forked_child_gets_a_ring_of_its_own(armed: Armed) -> None:
    """A forked child that records writes to its own ring, with the names it inherited, and spoils none."""
    result = armed.start("""
        import os, stepscope
        for _ in range(11): stepscope.step()
        pid = os.fork()
        for _ in range(20 if pid else 5):
            with stepscope.span("inherited" if pid else "child's"): stepscope.step()
        if pid: os.waitpid(pid, 0)
        else: os._exit(0)
    """)
    assert result.stderr == ""
    parent, child = armed.processes()
    assert [p.started.origin for p in (parent, child)] == ["exec", "fork"]
    assert child.started.ppid == parent.started.pid
    assert (len(parent.kinds(Kind.STEP)), len(child.kinds(Kind.STEP))) == (30, 4)
    assert len(child.kinds(Kind.SPAN)) == 5
    names = {line.id: line.text for line in child.of(Name)}
    assert {names[record.name] for record in child.records} == {"stepscope.step", "child's"}
    assert child.of(ProcessEnded) == []


def test_forked_child_that_records_nothing_costs_nothing(armed: Armed) -> None:
    """A forked child that never records has no directory, not even after collections and children of its own."""
    result = armed.start("""
        import gc, os, stepscope, subprocess
        stepscope.step()
        if os.fork() == 0:
            gc.collect(); subprocess.run(["true"]); print("child", flush=True); raise SystemExit(0)
        os.wait()
    """)
    assert (result.stdout, result.stderr) == ("child\n", "")
    assert len(armed.processes()) == 1


def test_fork_while_other_threads_record(armed: Armed) -> None:
    """Forks beside recording threads: every record is in the ring of the process that made it."""
    result = armed.start(
        """
        import os, threading, stepscope
        stepscope.step()
        stop = threading.Event()
        counts = [0, 0]
        def work(i):
            while not stop.is_set():
                with stepscope.span("parent"): counts[i] += 1
        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for thread in threads: thread.start()
        for _ in range(8):
            if os.fork() == 0:
                for _ in range(100):
                    with stepscope.span("child"): pass
                os._exit(0)
            os.wait()
        stop.set()
        for thread in threads: thread.join()
        print(sum(counts))
        """,
        "-W",
        "ignore",
    )
    parent, *children = armed.processes()
    assert result.stderr == ""
    assert len(children) == 8
    assert all(len(child.kinds(Kind.SPAN)) == 100 for child in children)
    last = max(record.seq for record in parent.records)
    assert last >= int(result.stdout)
    assert {record.seq for record in parent.records} == set(range(last - len(parent.records) + 1, last + 1))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(armed: Armed, tmp_path_factory: pytest.TempPathFactory, method: str) -> None:
    """Children of every start method are measured once they record, and the parent names who started them."""
    script = tmp_path_factory.mktemp("job") / "job.py"
    script.write_text(
        "import multiprocessing, stepscope\n"
        "def work():\n"
        "    stepscope.step(); stepscope.step()\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context('{method}')\n"
        "    stepscope.step()\n"
        "    child = context.Process(target=work, name='worker')\n"
        "    child.start()\n"
        "    child.join()\n"
        "    print(child.exitcode)\n"
    )
    result = armed.start(script)
    assert (result.stdout, result.stderr) == ("0\n", "")
    parent, child = armed.processes()
    assert len(child.kinds(Kind.STEP)) == 1
    for process in (parent, child):
        (main,) = [seen for seen in process.of(ThreadSeen) if seen.main]
        assert main.native == process.started.main_thread == process.started.pid
    started = [line for line in parent.of(ChildStarted) if line.command.endswith("worker")]
    assert [(line.pid, line.file, line.line) for line in started] == [(child.started.pid, str(script), 8)]


def test_a_thread_for_each_request(armed: Armed) -> None:
    """Every thread has its line, also those of which the agent's thread writes it, and those of the last moment."""
    result = armed.start("""
        import stepscope, threading, time
        for _ in range(20): stepscope.step()
        def work(i):
            with stepscope.span("request"): time.sleep(0.03)
        for i in range(200):
            thread = threading.Thread(target=work, args=(i,), name="request-%d" % i); thread.start()
            if i % 10 == 0: thread.join()
        thread.join()
    """)
    assert (result.returncode, result.stderr) == (0, "")
    (process,) = armed.processes()
    names = {line.id: line.name for line in process.of(ThreadSeen)}
    mine = {names[record.thread] for record in process.kinds(Kind.SPAN)}
    assert mine == {f"request-{i}" for i in range(200)}


def test_subprocess_is_armed_and_named(armed: Armed) -> None:
    """A Python that the job starts is measured too; the parent's log says where it was started."""
    armed.start("""
        import subprocess, sys, stepscope
        stepscope.step()
        subprocess.run([sys.executable, "-c", "import stepscope; stepscope.step()"], check=True)
    """)
    parent, child = armed.processes()
    (line,) = parent.of(ChildStarted)
    assert (line.pid, line.function, line.line) == (child.started.pid, "<module>", 4)
    assert child.started.ppid == parent.started.pid


def test_subprocess_that_cannot_start_raises_as_without_us(armed: Armed) -> None:
    """The user's exception is the interpreter's own, and our frame is its only addition."""
    result = armed.start("""
        import subprocess, stepscope
        stepscope.step()
        try: subprocess.run(["/no/such/program"])
        except FileNotFoundError as error: print(error.filename)
    """)
    assert result.stdout == "/no/such/program\n"
    assert armed.processes()[0].of(ChildStarted) == []


def test_exec_keeps_both_lives(armed: Armed) -> None:
    """A process that replaces itself by another Python has a directory for each."""
    armed.start("""
        import os, sys, stepscope
        stepscope.step()
        os.execv(sys.executable, [sys.executable, "-c", "import stepscope; stepscope.step()"])
    """)
    first, second = armed.processes()
    assert second.folder.name == first.folder.name + "-2"
    assert first.started.pid == second.started.pid


@pytest.mark.parametrize(
    ("how", "status"),
    [("os._exit(3)", 3), ("os.kill(os.getpid(), 9)", -signal.SIGKILL), ("os.abort()", -signal.SIGABRT)],
)
def test_sudden_ends_lose_nothing_that_was_written(armed: Armed, how: str, status: int) -> None:
    """After os._exit, SIGKILL and abort every record and line is there; only the end line is not."""
    result = armed.start(f"""
        import os, stepscope
        for _ in range(1001): stepscope.step()
        stepscope.metric("last", 1)
        {how}
    """)
    assert result.returncode == status
    (process,) = armed.processes()
    assert len(process.kinds(Kind.STEP)) == 1000
    assert process.of(ProcessEnded) == []
    assert process.started.at > 0


@pytest.mark.parametrize("how", ["", "raise SystemExit(5)", "1/0"])
def test_normal_ends_have_an_end_line(armed: Armed, how: str) -> None:
    """Every ordinary end of the interpreter writes the end line last, with the count of records."""
    result = armed.start(f"import stepscope\nfor _ in range(8): stepscope.step()\n{how}")
    assert result.returncode == {"": 0, "raise SystemExit(5)": 5, "1/0": 1}[how]
    (process,) = armed.processes()
    assert isinstance(process.lines[-1], ProcessEnded)
    assert process.lines[-1].records <= len(process.records)


def test_job_that_closes_all_descriptors(armed: Armed) -> None:
    """A job that closes every descriptor, as daemons do, gets no byte of ours into its files."""
    result = armed.start("""
        import os, stepscope
        stepscope.step()
        os.closerange(3, 1024)
        files = [os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR) for _ in range(1010)]
        stepscope.metric("after", 1)
        stepscope.step()
        print(sum(os.fstat(fd).st_size for fd in files))
    """)
    assert result.stdout == "0\n", result.stderr
