#!/usr/bin/env python3
"""The sanitized collector injected into plain programs. The programs must behave as without it, and ASan and UBSan must
have nothing to say.   injected.py BUILD_FOLDER"""
import os
import subprocess
import sys
import tempfile

PLACE = os.path.abspath(sys.argv[1] + "/tests/stress")
RUNTIME = subprocess.run(["clang", "-print-file-name=libclang_rt.asan-x86_64.so"], check=True, capture_output=True,
                         text=True).stdout.strip()
NVTX = ("everything", "load 4 20000", "churn 300", "crowd 100", "fork", "fork_under_load 6", "exec 2", "small_files 20000",
        "reenter", "many_names 70000", "late", "close_descriptors")


def run(words, preload, folder):
    environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0", UBSAN_OPTIONS="print_stacktrace=1", OPENBLAS_NUM_THREADS="1")
    if folder is not None:
        environment |= {"NVTX_INJECTION64_PATH": f"{PLACE}/libllmprof_inject.so", "LLMPROF_CAPTURE_DIR": folder}
    if preload:
        environment["LD_PRELOAD"] = " ".join(preload)
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)


def problem(words):
    """None if the run under the sanitized collector is as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        alone = run(words, [], None)
        seen = run(words, [RUNTIME, f"{PLACE}/libllmprof_blas.so"], folder)
        if "Sanitizer" in seen.stderr or "runtime error" in seen.stderr:
            return seen.stderr
        if seen.returncode != alone.returncode:
            return f"status {seen.returncode}, alone {alone.returncode}\n{seen.stderr}"
        if not any(name.endswith(".log") for name in os.listdir(folder)):
            return "no log was written"
    return None


# Without ASan's run-time in front the loader must refuse the library: so it is sanitized.
refused = run([f"{PLACE}/stress_client_nvtx", "quiet"], [f"{PLACE}/libllmprof_blas.so"], "/tmp")
if refused.returncode == 0 or "asan" not in refused.stderr.lower():
    sys.exit("sanitize: the injected library is not sanitized:\n" + refused.stderr)
cases = [[f"{PLACE}/stress_client_nvtx", *case.split()] for case in NVTX] + [[f"{PLACE}/stress_client_blas"]]
for words in cases:
    found = problem(words)
    if found is not None:
        sys.exit(f"sanitize: injected, {' '.join(words)}: {found}")
print(f"sanitize: injected into plain programs: {len(cases)} cases, nothing found")
