"""Other people's preloads, libraries that come and go, programs that cannot be injected."""
import os
import pathlib
import subprocess
import unittest

from oracle import BIN, COLLECT, FAULTS, LLMPROF, FaultCase, Recording

ALLOCATOR = str(FAULTS / "libfault_allocator.so")
INTERPOSER = str(COLLECT / "libcollect_interposer.so")
BLAS = str(COLLECT / "collect_client_blas")  # eight BLAS calls; the interposer sees one of them
HOOKS = str(BIN.parent / "lib/llmprof/libllmprof_blas.so")
LOOKALIKE = """
extern "C" {
int cublasSgemm_v2(int x) { return x + 1; }
int cudnnCreate(int x) { return x + 2; }
int sgemm_batch(int x) { return x + 3; }
int cblas_sgemm_like(int x) { return x + 4; }
}
#include <cstdio>
int main() { std::printf("%d\\n", cublasSgemm_v2(1) + cudnnCreate(1) + sgemm_batch(1) + cblas_sgemm_like(1)); }
"""


def address_sanitizer():
    """Path of libasan.so, or None."""
    path = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    return os.path.realpath(path) if path.startswith("/") else None


class Preload(FaultCase):
    def order(self, other, first):
        """A shell command that puts `other` before or behind what is preloaded already."""
        order = f'{other}${{LD_PRELOAD:+:$LD_PRELOAD}}' if first else f'${{LD_PRELOAD:+$LD_PRELOAD:}}{other}'
        return ["sh", "-c", f'LD_PRELOAD="{order}" exec "$@"', "sh"]

    def test_other_preloads_in_both_orders(self):
        """F09: an interposer of the same BLAS function and an allocator, before and behind us. An interposer looks like
        a BLAS: where none of its calls comes through us, it is named as one that is not seen."""
        for other in (INTERPOSER, ALLOCATOR):
            for first in (True, False):
                name = f"{pathlib.Path(other).stem}-{'first' if first else 'last'}"
                with self.subTest(name):
                    recording = self.both([*self.order(other, first), BLAS], name=name)
                    self.assertEqual(recording.query("SELECT count(*) AS n FROM gemm"), [{"n": 8}])
                    self.check(recording, allow=("blas_not_hooked",))
                    recording = self.both([*self.order(other, first), *self.victim("flood", name, 2, 20000)],
                                          name=name + "-events")
                    self.check(recording, allow=("blas_not_hooked",))

    def test_preloads_that_must_come_first(self):
        """F09: an allocator, a sanitizer's runtime: in front of ours, as llmprof record puts them."""
        for other in filter(None, (INTERPOSER, ALLOCATOR, address_sanitizer())):
            with self.subTest(other):
                name = "user-" + pathlib.Path(other).stem.split(".")[0]
                # Set inside, so that llmprof itself does not run under it. ASan's leaks are not the question here.
                words = ["env", f"LD_PRELOAD={other}", "ASAN_OPTIONS=detect_leaks=0"]
                alone = self.run_once([*words, BLAS], name + "-alone")
                path = str(self.folder / f"{name}.llmprof")
                done = self.run_once([LLMPROF, "record", "--no-peaks", "-o", path, "--", "env", f"LD_PRELOAD={other}:{HOOKS}",
                                      "ASAN_OPTIONS=detect_leaks=0", BLAS], name)
                self.assertEqual(done.returncode, alone.returncode, done.stderr)
                self.assertEqual(done.stdout, alone.stdout)
                recording = Recording(self, path, self.folder / f"{name}.ledger")
                self.assertEqual(recording.query("SELECT count(*) AS n FROM gemm"), [{"n": 8}])
                self.check(recording, allow=("blas_not_hooked",))

    def test_dlclose_and_again(self):
        """F08: the injected library and a plugin with its BLAS are closed more often than opened, and opened again."""
        self.check(self.both(self.victim("unload", "unload")))
        words = [str(COLLECT / "collect_client_dl"), "reload", str(COLLECT / "libcollect_plugin_a.so")]
        recording = self.both(words, name="reload")
        self.assertEqual(recording.query("SELECT count(*) AS n FROM gemm"), [{"n": 20}])
        self.check(recording)

    def test_a_blas_that_cannot_be_seen_is_said(self):
        """F08: reached through a handle only."""
        words = [str(COLLECT / "collect_client_dl"), "handle", str(COLLECT / "libcollect_fake_a.so")]
        recording = self.both(words)
        self.check(recording, expect=("blas_not_hooked",))

    def test_names_that_only_look_alike(self):
        """F11: a program that exports names like ours, or CUDA's, keeps its own functions."""
        source = self.write("alike.cpp", LOOKALIKE)
        self.run_command(["g++", "-rdynamic", "-o", "alike", source])
        recording = self.both([str(self.folder / "alike")])
        self.assertEqual(recording.query("SELECT count(*) AS n FROM kernel"), [{"n": 0}])
        self.check(recording)

    def test_what_cannot_be_injected(self):
        """F07, F12: static programs, also as children; helpers without events leave nothing."""
        source = self.write("hello.c", '#include <stdio.h>\nint main(void) { puts("static"); return 5; }\n')
        self.run_command(["cc", "-static", "-o", "hello", source])
        recording = self.both([str(self.folder / "hello")], name="static")
        self.check(recording, expect=("not_injected",))
        recording = self.both(["sh", "-c", f"{self.folder}/hello; for i in $(seq 41); do /bin/true; done; echo $?"],
                              name="helpers")
        self.check(recording)
        self.assertEqual([row["log"] for row in recording.processes.values() if row["log"]], [])


if __name__ == "__main__":
    unittest.main()
