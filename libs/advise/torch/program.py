# Runs a Python program below torch.profiler and writes what `llmprof import` reads.
# python3 THIS_FILE program.py arguments, or python3 THIS_FILE -m module arguments
import os
import runpy
import sys
import traceback

import torch
from torch.profiler import ProfilerActivity, profile

words = sys.argv[1:]
cuda = torch.cuda.is_available()
activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if cuda else [])
status = 0
if cuda:
    torch.cuda.memory._record_memory_history(max_entries=100000)
with profile(activities=activities, record_shapes=True, with_stack=True, profile_memory=True) as profiler:
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        status = end.code
    except Exception:  # what was seen until then is worth keeping
        traceback.print_exc()
        status = 1
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.memory._dump_snapshot("@OUTPUT@.pickle")
profiler.export_chrome_trace("@OUTPUT@.json")
sys.exit(status)
