"""Times of torch's calls on a GPU by CUPTI, shared by the bench_*_peer.py."""
import statistics
import sys


def device_times(torch, run, marker="FillFunctor<unsigned char>", ignored=None):
    """Runs run() under torch's profiler. (ns on the device, kernels) of each call; the fill of a flush begins a call."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as p:
        run()
        torch.cuda.synchronize()
    events = [e for e in p.profiler.kineto_results.events() if e.device_type() == torch.autograd.DeviceType.CUDA]
    calls = []
    for event in sorted(events, key=lambda e: e.start_ns()):
        if marker in event.name():
            calls.append((0, 0))
        elif calls and not (ignored and ignored in event.name()):
            calls[-1] = (calls[-1][0] + event.duration_ns(), calls[-1][1] + 1)
    return calls


def median_times(torch, calls, flush, count, warm_up=3):
    """Median us and kernels of each of `calls`; one profile for all of them, because starting one takes long."""
    for call in calls:
        for _ in range(warm_up):
            call()
    torch.cuda.synchronize()

    def run():
        for call in calls:
            for _ in range(count):
                flush.fill_(1)
                call()

    seen = device_times(torch, run)
    if len(seen) != count * len(calls) or not all(ns for ns, _ in seen):
        sys.exit(f"{count * len(calls)} calls were made, {len(seen)} were seen")
    each = [seen[i * count:(i + 1) * count] for i in range(len(calls))]
    return [(statistics.median(ns for ns, _ in one) / 1000, one[-1][1]) for one in each]
