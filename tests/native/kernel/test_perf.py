"""What perf may do is read from the host; how it is called follows from what the process does."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.native.kernel import perf
from stepscope.native.kernel.perf import Abilities, Rates


@pytest.fixture(name="host")
def _host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host whose settings the test writes; perf is installed, we have no rights."""
    (tmp_path / "kernel").mkdir()
    monkeypatch.setattr(perf, "_SETTINGS", tmp_path / "kernel")
    monkeypatch.setattr(perf, "_TRACING", tmp_path / "tracing")
    monkeypatch.setattr(perf, "_privileged", lambda: False)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/perf")
    for call, number in zip(perf.CALLS, (7, 8, 9), strict=True):
        folder = tmp_path / "tracing" / "events" / "syscalls" / f"sys_enter_{call}"
        folder.mkdir(parents=True)
        (folder / "id").write_text(f"{number}\n")
    return tmp_path


def setting(host: Path, name: str, value: int) -> None:
    (host / "kernel" / name).write_text(f"{value}\n")


@pytest.mark.parametrize(
    ("level", "able", "kernel", "code"),
    [(-1, True, True, ""), (1, True, True, ""), (2, True, False, "DX142"), (3, False, False, "DX141")],
)
def test_paranoia(host: Path, level: int, able: bool, kernel: bool, code: str) -> None:
    """Each level allows what the kernel's documentation says, and what is missing names the command."""
    setting(host, "perf_event_paranoid", level)
    found = perf.abilities()
    assert (bool(found.perf), found.kernel) == (able, kernel)
    assert [d.code for d in found.missing] == ([code] if code else [])
    assert all("sudo sysctl" in d.text for d in found.missing)


def test_without_perf(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install."""
    monkeypatch.setattr("shutil.which", lambda _: None)
    (missing,) = perf.abilities().missing
    assert missing.code == "DX140"
    assert "apt install" in missing.text


def test_without_tracefs(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are left out, and nothing is mounted for them."""
    setting(host, "perf_event_paranoid", 1)
    empty = host / "empty"
    empty.mkdir()
    monkeypatch.setattr(perf, "_TRACING", empty)
    found = perf.abilities()
    assert (found.calls, found.missing) == ({}, ())
    missing = perf.no_calls("record them")
    assert (missing.code, "mount -t tracefs" in missing.text) == ("DX144", True)
    words = perf.command(found, 1, "o", 5, Rates(cores=1, faults_per_s=50))
    assert not [word for word in words if "syscalls" in word or "tracepoint" in word]


def test_hidden_kernel_symbols(host: Path) -> None:
    """kptr_restrict takes the names away, not the samples."""
    setting(host, "perf_event_paranoid", 1)
    setting(host, "kptr_restrict", 1)
    found = perf.abilities()
    assert found.kernel
    assert [d.code for d in found.missing] == ["DX143"]


@pytest.mark.parametrize(
    ("cores", "faults", "hz", "period"), [(1, 100, 99, 1), (1, 400_000, 99, 2000), (64, 0, 9, 1), (4, 1000, 50, 5)]
)
def test_rates_bound_what_is_recorded(cores: float, faults: float, hz: int, period: int) -> None:
    """Some two hundred samples a second of each event, whatever the job does."""
    rates = Rates(cores=cores, faults_per_s=faults)
    assert (rates.frequency, rates.fault_period) == (hz, period)


def test_a_command() -> None:
    """Monotonic clock, addresses, stacks; sites at a period of their own; the kernel left out without rights."""
    can = Abilities(perf="perf", kernel=False, calls={"madvise": 7})
    words = perf.command(can, 42, "out", 2.5, Rates(cores=1, faults_per_s=50, calls_per_s={"madvise": 400}))
    assert words[:3] == ["perf", "record", "-q"]
    assert words[-3:] == ["--", "sleep", "2.5"]
    assert (words[words.index("-k")], words[words.index("-k") + 1]) == ("-k", "CLOCK_MONOTONIC")
    events = [words[i + 1] for i, word in enumerate(words) if word == "-e"]
    assert [event.partition("/")[0] for event in events] == [
        "cpu-clock",
        "page-faults",
        "syscalls:sys_enter_madvise",
        "tracepoint",
    ]
    assert all(event.endswith("/u") for event in events[:2])
    assert "config=7,period=10," in events[3]


def test_without_faults_cpu_time_alone_is_recorded() -> None:
    """What is given back and not faulted in again costs nothing; each event costs at each turn of a thread."""
    can = Abilities(perf="perf", calls={"madvise": 7})
    words = perf.command(can, 42, "out", 2.5, Rates(cores=1, faults_per_s=3, calls_per_s={"madvise": 400}))
    assert [word.partition("/")[0] for word in words if "/" in word] == ["cpu-clock"]
    assert (words[words.index("-p") + 1], "-d" in words, "-a" in words) == ("42", False, False)


def test_counters_of_every_cpu_keep_off_the_beat_of_python_samples() -> None:
    """These come 99 times a second, too: as often, one would see the other always or never."""
    rates = Rates(cores=1, faults_per_s=0)
    words = perf.command(Abilities(perf="perf"), 42, "out", 2.5, rates, every_cpu=True, begin=["-D", "-1"])
    assert ("-a" in words, "-p" in words, words[words.index("-D") + 1]) == (True, False, "-1")
    (event,) = [word for word in words if word.startswith("cpu-clock")]
    period_s = int(event.partition("period=")[2].partition(",")[0]) / 1e9
    assert 1 / 100 < period_s < 1 / rates.frequency


def test_counts_are_read() -> None:
    """Of perf stat's lines; what was not counted is left out."""
    text = "# started\n\n400;;syscalls:sys_enter_madvise;100;100.00;;\n<not counted>;;syscalls:sys_enter_brk;0;0;;\n"
    assert perf.counted(text) == {"madvise": 400 / perf.COUNT_SECONDS}
