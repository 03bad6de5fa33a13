"""CPU stacks: the function table by stage, of a native and of a Python program, and what is said where sampling is
forbidden."""
import ctypes
import struct
import unittest

from harness import SYSTEM_PYTHON, WORKLOAD, Case

PROGRAM = """
import time

def busy(n):
    return sum(i * i for i in range(n))

class Layer:
    def forward(self, seconds):
        end = time.process_time() + seconds
        while time.process_time() < end:
            busy(20000)

Layer().forward(1.0)
"""


def forbid_sampling():
    """The kernel answers perf_event_open with EPERM, as in many containers: a seccomp filter of this process and its
    children."""
    load, equal, answer, allow = 0x20, 0x15, 0x06, 0x7FFF0000
    perf_event_open, eperm = 298, 0x00050000 | 1
    code = b"".join(struct.pack("HBBI", *line) for line in (
        (load, 0, 0, 0), (equal, 0, 1, perf_event_open), (answer, 0, 0, eperm), (answer, 0, 0, allow)))
    buffer = ctypes.create_string_buffer(code)

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    program = Program(4, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None)
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0 or libc.prctl(set_seccomp, filter_mode, ctypes.byref(program)) != 0:
        raise OSError("no seccomp")


class Stacks(Case):
    def sampled_report(self, name):
        report = self.report(name)
        why = report["stacks"]["why"]
        if why:
            self.assertEqual(report["functions"], [])
            self.assertIn("no_stack_samples", [loss["name"] for loss in report["losses"]])
            self.skipTest(why)
        return report

    def check_sums(self, report):
        """Self times add up to what was sampled; nothing has more self than total time."""
        functions, stacks = report["functions"], report["stacks"]
        self.assertGreater(stacks["samples"], 20)
        weight = stacks["sampled_ns"] / stacks["samples"]
        self.assertAlmostEqual(sum(f["self_ns"] for f in functions),
                               stacks["sampled_ns"] - weight * stacks["without_stack"], delta=weight)
        for function in functions:
            self.assertLessEqual(function["self_ns"], function["total_ns"], function)
        shares = {}
        for function in functions:
            shares[function["stage"]] = shares.get(function["stage"], 0) + function["self_share"]
        for stage, share in shares.items():
            self.assertLess(share, 1.0001, stage)

    def test_training_by_stage(self):
        self.record("run", WORKLOAD, "train", "--preset", "demo", "--steps", "6", options=("--no-peaks", "--sample-hz", "499"))
        report = self.sampled_report("run")
        self.check_sums(report)
        functions = report["functions"]
        stages = {f["stage"] for f in functions}
        self.assertLessEqual({"forward", "backward"}, stages)
        self.assertLess(report["stacks"]["truncated_share"], 0.05)
        # The stage that most time was spent in is seen as such, and its matrix products are counted.
        self.assertTrue([f for f in functions if f["calls"] and f["name"].startswith("cblas_")],
                        [f["name"] for f in functions])
        self.assertIn("main", [f["name"] for f in functions])

    def test_sampled_time_is_the_cpu_time(self):
        self.record("run", SYSTEM_PYTHON, self.write("program.py", PROGRAM), options=("--no-peaks", "--sample-hz", "499"))
        report = self.sampled_report("run")
        used = self.query("run", "SELECT max(user_ns + system_ns) AS ns FROM process_usage")[0]["ns"]
        # Two measures of the same: the kernel's count and the number of samples. Time in system calls is only sampled
        # where that is permitted.
        self.assertGreater(report["stacks"]["sampled_ns"], 0.7 * used)
        self.assertLess(report["stacks"]["sampled_ns"], 1.1 * used + 1e8)

    def test_python_functions(self):
        self.record("run", SYSTEM_PYTHON, self.write("program.py", PROGRAM), options=("--no-peaks", "--sample-hz", "499"))
        report = self.sampled_report("run")
        self.check_sums(report)
        python = {f["name"]: f for f in report["functions"]
                  if f["kind"] == "python" and f["file"] == str(self.folder / "program.py")}
        version = self.run_command([SYSTEM_PYTHON, "-c", "import sys; print(sys.version_info[:2] in ((3, 11), (3, 12)))"])
        if version.stdout.strip() != "True":
            self.assertIn("no_python_frames", [loss["name"] for loss in report["losses"]])
            return
        for name in ("<module>", "Layer.forward", "busy"):
            self.assertIn(name, python)
        # Where the program had moved on only the innermost function is known, so a caller may have less, on a busy machine a good deal less.
        self.assertGreater(python["Layer.forward"]["total_ns"], 0.5 * python["busy"]["total_ns"])
        text = self.llmprof("report", "run", "--full").stdout
        self.assertIn("Functions by self time", text)
        self.assertIn("of the stacks are truncated", text)

    def test_without_permission(self):
        done = self.record("run", SYSTEM_PYTHON, "-c", "print('untouched'); raise SystemExit(3)", status=3,
                           preexec_fn=forbid_sampling)
        self.assertIn("untouched", done.stdout)
        report = self.report("run")
        self.assertIn("perf_event_open", report["stacks"]["why"])
        self.assertEqual(report["stacks"]["samples"], 0)
        lost = {loss["name"]: loss for loss in report["losses"]}
        self.assertIn("no_stack_samples", lost)
        self.assertIn("doctor", lost["no_stack_samples"]["remedy"])
        doctor = self.llmprof("doctor", status=None, preexec_fn=forbid_sampling).stdout
        self.assertIn("seccomp", doctor)

    def test_switched_off(self):
        self.record("run", SYSTEM_PYTHON, "-c", "pass", options=("--no-peaks", "--no-stacks"))
        report = self.report("run")
        self.assertEqual(report["stacks"]["why"], "--no-stacks")
        self.assertEqual(report["functions"], [])


if __name__ == "__main__":
    unittest.main()
