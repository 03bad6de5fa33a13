# Profiles a few steps of a loop; the first two are left out. Writes "@OUTPUT@.N.json", N being the number of the step.
#
#   with profiled_steps() as steps:
#       for batch in batches:
#           with torch.profiler.record_function("forward"):  # or prefill, decode_step, backward, optimizer
#               ...
#           steps.step()
import torch
from torch.profiler import ProfilerActivity, profile, schedule


def profiled_steps(active=3, stacks=True, memory=False):
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])
    return profile(
        activities=activities,
        schedule=schedule(wait=1, warmup=1, active=active, repeat=1),
        record_shapes=True,
        with_stack=stacks,
        profile_memory=memory,
        on_trace_ready=lambda p: p.export_chrome_trace("@OUTPUT@" + f".{p.step_num}.json"),
    )
