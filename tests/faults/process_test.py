"""fork, exec, spawn: every process image has its own log, or none, and nobody hangs."""
import unittest

from oracle import SOAK, SYSTEM_PYTHON, FaultCase

NUMPY_POOL = """import multiprocessing as mp, os, sys
import numpy as np

def work(n):
    for i in range(3):
        np.ones((n, 4)) @ np.ones((4, 4))
    return n

if __name__ == "__main__":
    np.ones((2, 2)) @ np.ones((2, 2))
    context = mp.get_context(sys.argv[1])
    with context.Pool(3) as pool:
        print(sorted(pool.map(work, range(10, 22), chunksize=1)))
        pool.close()
        pool.join()
"""


class Process(FaultCase):
    def logs(self, recording):
        return [row for row in recording.processes.values() if row["log"]]

    def test_fork_under_load(self):
        """F01, F02: 200 forks while eight threads raise events. A quarter of the children just leaves, a quarter
        computes, a quarter works and exits, a quarter works and leaves by _exit."""
        forks = 1000 if SOAK else 200
        recording = self.both(self.victim("fork_under_load", "load", forks))
        self.check(recording, allow=("buffer_full", "still_running"))
        parents = {row["pid"] for row in self.logs(recording) if recording.label_of(row["id"]) == "load"}
        self.assertEqual(len(parents), 1)
        children = [row for row in self.logs(recording) if row["pid"] not in parents]
        self.assertEqual(len(children), forks // 2)  # those with events of their own; each its own row and log
        for row in children:
            label = recording.label_of(row["id"])
            if row["parent_pid"] is None:  # left by _exit before the first block was written: its log is a header
                self.assertEqual((int(label.rpartition("c")[2]) % 4, recording.recovered(label)), (3, {}), label)
            else:
                self.assertIn(row["parent_pid"], parents, label)
        self.assertEqual(len({row["log"] for row in children}), len(children))
        for i in range(2, forks, 4):
            self.assertEqual(recording.recovered(f"load.c{i}"), {0: 5})
        for i in range(0, forks, 4):
            self.assertEqual(recording.recovered(f"load.c{i}"), {})

    def test_fork_while_recording_begins(self):
        """F02: other threads are just starting the collector when the process forks. The child's 200 events must not
        each wait for a thread that the fork left behind."""
        recording = self.both(self.victim("fork_at_start", "early", 200 if SOAK else 60), limit_s=60)
        self.check(recording, killed=[label for label in recording.ledgers if ".g" in label])

    def test_tree(self):
        """F04: parent, four spawned workers, two forked ones."""
        recording = self.both(self.victim("tree", "tree"), host=True)
        self.check(recording)
        logs = self.logs(recording)
        self.assertEqual(len(logs), 7)
        parent = next(row["pid"] for row in logs if recording.label_of(row["id"]) == "tree")
        for row in logs:
            self.assertEqual(row["parent_pid"] == parent, row["pid"] != parent)

    def test_exec_chain(self):
        """F05: seven execs on one pid, each image with events; then one without any."""
        recording = self.both(self.victim("exec_chain", "chain", 7))
        self.check(recording, expect=("abnormal_end",))
        logs = self.logs(recording)
        self.assertEqual(len(logs), 8)
        self.assertEqual(len({row["pid"] for row in logs}), 1)
        for left in range(8):
            self.assertEqual(recording.recovered(f"chain.x{left}"), {0: 5})

    def test_a_thousand_short_children(self):
        """F03, F06: by fork and exec, vfork and exec, posix_spawn; fifty through a shell, which has no events and
        leaves no log."""
        children = 1000
        recording = self.both(self.victim("many_children", "many", children, 50))
        self.check(recording)
        self.assertEqual(len(self.logs(recording)), children + 1)
        for i in range(children):
            self.assertEqual(recording.recovered(f"many.k{i}"), {0: 2})

    def test_daemon(self):
        """S03: fork, own session, descriptors to /dev/null; the daemon's own log is whole."""
        recording = self.both(self.victim("daemon", "classic"))
        self.check(recording)
        self.assertEqual(recording.recovered("classic.daemon"), {0: 50})

    def test_clone_without_handlers(self):
        """F03: a child made by the bare system call. What it does is not recorded and does no harm; a known gap."""
        recording = self.both(self.victim("raw_clone", "raw"))
        self.assertEqual(recording.recovered("raw"), {0: 100})
        self.assertEqual(recording.recovered("raw.raw"), {})
        del recording.ledgers["raw.raw"]
        self.check(recording)

    def test_pools_of_python(self):
        """F01: fork, forkserver and spawn, with BLAS calls in the workers. Workers of a pool end by _exit: the last
        calls may be missing, never a wrong one."""
        script = self.write("pool.py", NUMPY_POOL)
        for method in ("fork", "forkserver", "spawn"):
            with self.subTest(method):
                recording = self.both([SYSTEM_PYTHON, script, method], name=f"pool-{method}")
                rows = recording.query("SELECT CAST(m AS INT) * CAST(n AS INT) * CAST(k AS INT) AS size, count(*) AS n "
                                       "FROM gemm GROUP BY ALL")
                self.check(recording, allow=("still_running",))
                sizes = {row["size"]: row["n"] for row in rows}
                self.assertLessEqual(set(sizes), {8} | {16 * n for n in range(10, 22)})
                for size, count in sizes.items():
                    self.assertLessEqual(count, 4 if size == 8 else 3)


if __name__ == "__main__":
    unittest.main()
