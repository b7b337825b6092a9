"""CPU, memory, disk, network and GPU over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import verdict, words
from stepscope.report.blocks import Drawing
from stepscope.report.marked import Html
from stepscope.report.page import charts
from stepscope.report.page.charts import Chart, LeftOut, Resource
from stepscope.report.page.figures import figures
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOTHING = "nothing: the job was too short, or no sampler ran"
CPU = (
    Resource(key="res:cpu_cores", css="s-job", label="job"),
    Resource(key="res:others_cores", css="s-others", label="others"),
    Resource(key="res:wait_cores", css="s-wait", label="waiting for a CPU"),
)
CPU_LIMIT = Resource(key="res:cpu_limit_cores", css="s-limit", label="CPU limit of the job")
MEMORY = (Resource(key="res:rss_mb", css="s-memory", label="resident"),)
MEMORY_LIMIT = Resource(key="res:memory_limit_mb", css="s-limit", label="cgroup limit")
DISK = (
    Resource(key="res:read_mb_s", css="s-read", label="read"),
    Resource(key="res:write_mb_s", css="s-write", label="written"),
)
KERNEL = (
    Resource(key="res:kernel_percent", css="s-job", label="in the kernel"),
    Resource(key="res:fault_percent", css="s-write", label="in page faults"),
)
DISK_LIMIT = Resource(key="res:disk_limit_mb_s", css="s-limit", label="cgroup limit")
BUSY = (Resource(key="res:busiest_core", css="s-job", label="busiest CPU"),)
NETWORK = (
    Resource(key="res:net_in_mb_s", css="s-read", label="in"),
    Resource(key="res:net_out_mb_s", css="s-write", label="out"),
)
NETWORK_LIMIT = Resource(key="res:net_limit_mb_s", css="s-limit", label="link speed")
DISK_BUSY = (Resource(key="res:disk_busy_percent", css="s-read", label="busiest disk"),)
GPU = (Resource(key="res:gpu_busy_percent", css="s-job", label="busy"),)
GPU_MEMORY = (
    Resource(key="res:gpu_reserved_mb", css="s-memory", label="reserved"),
    Resource(key="res:gpu_live_mb", css="s-write", label="live"),
)
GPU_LIMIT = Resource(key="res:gpu_limit_mb", css="s-limit", label="device memory")
PCIE = (
    Resource(key="res:pcie_in_mb_s", css="s-read", label="to the device"),
    Resource(key="res:pcie_out_mb_s", css="s-write", label="from the device"),
)


def _charts(series: Mapping[str, Sequence[float]]) -> Html:
    low = charts.LOW
    memory = charts.resource("memory", "MB", series, MEMORY, height=low, limit=MEMORY_LIMIT)
    disk = charts.resource("disk", "MB/s", series, DISK, height=low, limit=DISK_LIMIT)
    two = isinstance(memory, Chart) and isinstance(disk, Chart)
    height = charts.TALL if two else charts.HEIGHT
    cpu = charts.resource("cpu", "cores", series, CPU, height=height, limit=CPU_LIMIT)
    shown = figures("tall-first", (cpu, "CPU"), (memory, "Memory"), (disk, "Disk"))
    more: list[tuple[Chart | LeftOut, str]] = []
    for name, unit, lines, limit, title in (
        ("network", "MB/s", NETWORK, NETWORK_LIMIT, "Network"),
        ("disk-busy", "%", DISK_BUSY, None, "Busiest disk"),
        ("busiest-core", "cores", BUSY, None, "Busiest CPU"),
        ("kernel", "%", KERNEL, None, "Kernel and page faults, share of the job's CPU time"),
        ("gpu", "%", GPU, None, "GPU"),
        ("gpu-memory", "MB", GPU_MEMORY, GPU_LIMIT, "GPU memory"),
        ("pcie", "MB/s", PCIE, None, "PCIe"),
    ):
        if any(series.get(line.key) for line in lines):
            more.append((charts.resource(name, unit, series, lines, height=low, limit=limit), title))
    return shown + (figures("", *more) if more else Html())


def _lines(asked: Asked) -> Said:
    """Of a job without steps, of which there is nothing better to say."""
    report = asked.report
    if not report.session.steps:
        items = tuple(words.measured_items(report))
        silent = verdict.nothing_to_show(report) and not asked.verbose
        yield Lines(
            label="measured", texts=[items or ("" if silent else NOTHING)], where=Where.HEAD, web=True, always=True
        )


def _blocks(asked: Asked) -> Blocks:
    if not words.is_imported(asked.report):
        yield Drawing(lambda: _charts(asked.report.series))


SECTION = Section(key="resources", title="Resources", lines=_lines, blocks=_blocks)
