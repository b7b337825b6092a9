"""What the programs share: the command line, and the loop that trains, times its steps and traces some."""
import argparse
import json
import time

import torch


def arguments():
    """The command line's parser."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tiny", action="store_true", help="small layers, few steps: for a CPU")
    parser.add_argument("--steps", type=int, default=0, help="steps that are timed (default 150; 12 with --tiny)")
    parser.add_argument("--trace", default="", metavar="FILE", help="trace four steps after those that are timed")
    parser.add_argument("--mark", action="store_true", help="mark the steps with stepscope.step()")
    options = parser.parse_args()
    options.steps = options.steps or (12 if options.tiny else 150)
    options.device = "cuda" if torch.cuda.is_available() else "cpu"
    return options


def train(options, batches, step):
    """Train; print what the timed steps took. step: called with a batch, returns the loss as a tensor or a number."""
    batches, on_gpu = iter(batches), options.device == "cuda"
    mark = (lambda: None)
    if options.mark:
        import stepscope
        mark = stepscope.step

    def run(count, between=lambda: None):
        loss = None
        for _ in range(count):
            loss = step(next(batches))
            mark()
            between()
        if on_gpu:
            torch.cuda.synchronize()
        return float(loss)

    run(5)
    began = time.perf_counter()
    loss = run(options.steps)
    spent = time.perf_counter() - began
    told = {"steps": options.steps, "seconds": round(spent, 3), "loss": loss}
    if options.trace:
        told |= traced(options, run, on_gpu)
    print(json.dumps(told))


def traced(options, run, on_gpu):
    """Trace four steps. Returns what CUDA's own events say of as many steps just before."""
    told = {}
    if on_gpu:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        run(4)
        last.record()
        torch.cuda.synchronize()
        told["event_ms_per_step"] = round(first.elapsed_time(last) / 4, 3)
    kinds = [torch.profiler.ProfilerActivity.CPU] + [torch.profiler.ProfilerActivity.CUDA] * on_gpu
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=4)
    with torch.profiler.profile(activities=kinds, schedule=schedule) as profiler:
        run(6, profiler.step)
    profiler.export_chrome_trace(options.trace)
    return told
