"""What a program can say of itself at its end."""
import json
import os
import resource


def show(**figures):
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({**figures, "pid": os.getpid(), "peak_kib": usage.ru_maxrss, "cpu_s": usage.ru_utime + usage.ru_stime,
                      "threads": len(os.listdir("/proc/self/task"))}))
