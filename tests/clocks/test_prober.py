"""Collectors on one machine exchange stamps over real sockets; their clocks are the same, so the truth is 0."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.clocks.ports import free_ports

from stepscope.clocks import clock_domain, datagrams, packet, prober, settings
from stepscope.clocks.prober import Exchange, Prober
from stepscope.collector.samplers.base import Rows
from stepscope.collector.samplers.clocks import ClockSampler
from stepscope.collector.samplers.names import NameNumbers
from stepscope.derive.clocks import session_links
from stepscope.model.session import clock_domain as domains
from stepscope.model.session.session import HostInfo, Manifest, Peers, Session
from stepscope.tables.errors import UsageError
from stepscope.tables.network_tables import ClockProbeTable

KEY = b"k" * 32
BOOTS = ("first", "second", "third")


def exchanged(count: int, keys: list[bytes] | None = None) -> list[list[Exchange]]:
    """What each of some collectors found until the first of them had its last burst."""
    hosts = [("127.0.0.1", port) for port in free_ports(count)]
    probers = [Prober(hosts, (keys or [KEY] * count)[n], domains.key(BOOTS[n], "")) for n in range(count)]
    for one in probers:
        one.start()
    assert [one.problem for one in probers] == [""] * count
    for one in reversed(probers):
        one.close()
    return [one.take() for one in probers]


def test_a_burst_gives_quads_whose_bounds_hold_zero() -> None:
    """The reference asks nobody; the other has a whole burst, and 0 lies within each exchange's bounds."""
    reference, other = exchanged(2)
    assert reference == []
    assert len(other) >= prober.BURST - 2
    assert all(one.answered_ns - one.returned_ns <= 0 <= one.received_ns - one.sent_ns for one in other)
    assert {one.peer.partition(" ")[0] for one in other} == {f"clock:{domains.key('first', '')}"}
    assert len({one.real_ns // 1_000_000 for one in other}) <= 2


def test_hosts_also_exchange_with_each_other() -> None:
    """The third of three asks the reference and the second."""
    _, _, third = exchanged(3)
    assert len({one.peer for one in third}) == 2


def test_who_has_not_the_key_gets_no_answer() -> None:
    """A collector with another key finds nothing."""
    _, other = exchanged(2, [KEY, b"y" * 32])
    assert other == []


def test_another_name_of_the_same_host_is_left_out() -> None:
    """Two entries of one clock domain have nothing to compare."""
    hosts = [("127.0.0.1", port) for port in free_ports(2)]
    both = [Prober(hosts, KEY, domains.key("same", "")) for _ in hosts]
    for one in both:
        one.start()
    for one in reversed(both):
        one.close()
    assert [one.take() for one in both] == [[], []]


def test_one_collector_of_a_host_is_enough() -> None:
    """The second finds the place taken, says so, and does nothing until the first has ended: then it takes over."""
    hosts = [("127.0.0.1", free_ports(1)[0]), ("192.0.2.1", 7331)]
    first, second = (Prober(hosts, KEY, "11" * 8) for _ in range(2))
    first.start()
    second.start()
    assert first.problem == ""
    assert "another collector" in second.problem
    assert not second.begun
    first.close()
    second.start()
    assert (second.begun, second.problem) == (True, "")
    second.close()


def test_arrivals_are_stamped_by_the_kernel() -> None:
    """A datagram that was read late has the time at which it came."""
    port = free_ports(1)[0]
    bound = datagrams.bind([("127.0.0.1", port)])
    assert bound is not None
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.sendto(b"x" * packet.SIZE, ("127.0.0.1", port))
    sent_ns, _ = datagrams.both_clocks()
    while datagrams.both_clocks()[0] < sent_ns + 20_000_000:
        pass  # the CPU is busy, as that of a training host
    came = bound[0].receive(packet.SIZE)
    bound[0].close()
    sender.close()
    assert came is not None
    assert came[2] < sent_ns + 10_000_000


def session(boot: str, found: list[Exchange], origin_ns: int) -> Session:
    """A session with what a collector found."""
    names, rows = NameNumbers(), Rows(ClockProbeTable)
    for one in found:
        rows.add(
            one.sent_ns - origin_ns,
            names.number(one.peer),
            one.burst,
            one.received_ns,
            one.answered_ns,
            one.returned_ns - origin_ns,
            one.real_ns,
            one.peer_real_ns,
        )
    host = HostInfo(name=boot, boot_id=boot)
    manifest = Manifest(host=host, origin_monotonic_ns=origin_ns, ended_ns=1_000_000_000)
    return Session(
        manifest=manifest, peers=Peers(clock_probes=rows.table()), resource_names=tuple(names.by_number().values())
    )


def test_sessions_of_hosts_become_clocks() -> None:
    """From the tables of sessions: a clock for each host, 0 within its bounds, whichever is the reference."""
    found = exchanged(3)
    origin = min(one.sent_ns for one in found[2]) - 1_000
    sessions = [session(boot, rows, origin) for boot, rows in zip(BOOTS, found, strict=True)]
    for reference in range(3):
        model = session_links.model_of(sessions, session_links.domain(sessions[reference]))
        assert model is not None
        assert set(model.clocks) == {session_links.domain(one) for one in sessions}
        at = np.array([origin + 1e7])
        for clock in model.clocks.values():
            low, high = clock.bounds(at)
            assert low[0] <= 0 <= high[0]
    assert session_links.peers(sessions[2]).keys() == {session_links.domain(one) for one in sessions[:2]}
    assert session_links.model_of([Session(manifest=Manifest())]) is None


def test_settings_travel_without_the_key(tmp_path: Path) -> None:
    """The run directory names the file; the collector reads it, and only if nobody else can."""
    key = tmp_path / "key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    asked = settings.parse("a, b:99,[fe80::1]:7,10.0.0.1", key)
    assert asked.hosts == (("a", 7331), ("b", 99), ("fe80::1", 7), ("10.0.0.1", 7331))
    asked.write(tmp_path)
    assert settings.read(tmp_path) == asked
    assert KEY.decode() not in (tmp_path / "clocks.json").read_text()
    assert settings.key_of(key) == KEY
    key.chmod(0o640)
    with pytest.raises(ValueError, match="chmod 600"):
        settings.key_of(key)


@pytest.mark.parametrize(
    ("hosts", "content", "mode", "said"),
    [
        ("a", KEY, 0o600, "1 hosts"),
        ("", KEY, 0o600, "expected one of them"),
        ("a,b:x", KEY, 0o600, "no HOST"),
        ("a,b:70000", KEY, 0o600, "no HOST"),
        ("a,b", b"short", 0o600, "5 bytes"),
        ("a,b", KEY, 0o644, "chmod 600"),
        ("a,b", None, 0o600, "cannot be read"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, hosts: str, content: bytes | None, mode: int, said: str) -> None:
    """Each names what is wrong."""
    key = tmp_path / "key"
    if content is not None:
        key.write_bytes(content)
        key.chmod(mode)
    with pytest.raises(UsageError, match=said):
        settings.parse(hosts, key)


def test_hosts_without_a_key_are_refused() -> None:
    """Nothing listens beyond this host without a key."""
    with pytest.raises(UsageError, match="--key-file"):
        settings.parse("a,b", None)


def test_a_sampler_without_settings_does_nothing(tmp_path: Path) -> None:
    """Unless the run asks for it, nothing is opened; a key that is gone is said."""
    sampler = ClockSampler(0, NameNumbers())
    sampler.start(tmp_path)
    sampler.sample()
    assert sampler.close() == ""
    settings.ClockSettings(hosts=(("a", 1), ("b", 2)), key_file=str(tmp_path / "none")).write(tmp_path)
    sampler.start(tmp_path)
    assert "cannot be read" in sampler.close()


def test_the_clock_domain_of_this_process() -> None:
    """One boot and one time namespace are one domain; another of either is another."""
    own = domains.key(clock_domain.boot_id(), clock_domain.time_namespace())
    assert len(own) == 16
    assert own != domains.key(clock_domain.boot_id(), "time:[1]")
    assert own != domains.key("x", clock_domain.time_namespace())
    assert domains.key("", "x") == ""
    assert msgspec.json.decode(msgspec.json.encode(HostInfo(time_namespace="t")), type=HostInfo).time_namespace == "t"
