"""Crowds, churn, floods, tiny stacks, cancelled threads and names of every kind."""
import unittest

from oracle import SOAK, FaultCase, noted


class Thread(FaultCase):
    def added(self, recording, label, what):
        alone = self.folder / "run.alone.ledger"
        return noted(recording.ledger_folder, label, what) - noted(alone, label, what)

    def test_ten_thousand_threads_at_once(self):
        """T01: all their events or counted drops; at most 64 MiB and 1,000 mappings more than without llmprof."""
        recording = self.both(self.victim("crowd", "crowd", 10000, 10))
        self.check(recording, allow=("buffer_full", "thread_table_full"))
        self.assertGreater(sum(recording.recovered("crowd").values()), 50000)
        self.assertLessEqual(self.added(recording, "crowd", "peak_kib"), 64 * 1024)
        self.assertLessEqual(self.added(recording, "crowd", "maps"), 1000)

    def test_more_threads_than_there_are_buffers(self):
        """20,000 at once: more than the collector can follow. What it cannot follow is counted."""
        recording = self.both(self.victim("crowd", "throng", 20000 if SOAK else 17000, 3), limit_s=240)
        self.check(recording, allow=("buffer_full", "thread_table_full"))
        self.assertGreater(recording.total("buffer_full") + recording.total("thread_table_full"), 0)

    def test_churn(self):
        """T02: 100,000 threads, four at a time: what they used is used again."""
        recording = self.both(self.victim("churn", "churn", 100000, 3), limit_s=240)
        self.check(recording, allow=("buffer_full",))
        early, peak = (noted(recording.ledger_folder, "churn", what) for what in ("early_kib", "peak_kib"))
        self.assertLessEqual(peak - early, 32 * 1024)  # three quarters of the threads came after the first reading

    def test_flood_onto_a_slow_disk(self):
        """T04: every write takes 20 ms while two threads raise events as fast as they can. Nothing waits for the disk,
        what found no buffer is counted exactly."""
        events = 400000
        children = [{"label": "flood", "scenario": "flood", "arguments": [2, events], "shim": True,
                     "env": {"FAULT_SLEEP_US": "20000", "LLMPROF_POOL_CHUNKS": "256"}}]
        recording = self.both(self.batch(children))
        self.check(recording, expect=("buffer_full",))
        found = sum(recording.recovered("flood").values())
        self.assertEqual(found + recording.of_label("flood")["buffer_full"], 2 * events)

    def test_flood_onto_a_stuck_disk(self):
        """A write that takes longer than the exit may last: the program ends on its own terms, the log is cut."""
        children = [{"label": "stuck", "scenario": "run", "arguments": [1000], "shim": True,
                     "env": {"FAULT_SLEEP_US": "5000000"}}]
        recording = self.both(self.batch(children))
        self.check(recording, expect=("abnormal_end",))

    def test_small_stacks(self):
        """C10: the smallest stack a thread can have."""
        children = [{"label": f"small-{extra}", "scenario": "small_stack", "arguments": [100, extra]}
                    for extra in (0, 1024, 4096)]
        self.check(self.both(self.batch(children)))

    def test_large_thread_local_data(self):
        """A program with 1 MiB of static thread-local data: every thread's stack holds it, the collector's too."""
        children = [{"label": "large", "scenario": "run", "arguments": [100],
                     "program": str(self.victim("", "")[0]) + "_tls"}]
        recording = self.both(self.batch(children))
        self.check(recording)
        self.assertEqual(recording.recovered("large"), {0: 100})

    def test_cancelled_thread(self):
        """A cancelled thread raises the first event of the process: it ends where it wants to end, not inside us, and
        nobody waits for what it held."""
        recording = self.both(self.victim("cancelled", "cancelled"), limit_s=60)
        self.check(recording)
        self.assertEqual(recording.recovered("cancelled"), {0: 10, 1: 10, 2: 1000})

    def test_hostile_names(self):
        """T05: no UTF-8, markup, SQL, control characters, 64 KiB, 1 MiB. Bytes stay as they are, the cut is counted."""
        recording = self.both(self.victim("hostile_names", "names"))
        # 64 KiB fits; three are longer.
        self.check(recording, expect=("name_truncated",))
        self.assertEqual(recording.total("name_truncated"), 3)
        self.assertEqual(recording.recovered("names"), {0: 12})
        rows = recording.query("SELECT name, length(name) AS n FROM range WHERE kind = 'push_pop' ORDER BY begin_ns")
        names = [row["name"] for row in rows]
        self.assertEqual(len(names), 13)
        self.assertEqual(names[2:8], ["new\nline\r\ttab", "</script><script>alert(1)</script>",
                                      "'; DROP TABLE range; --", "%s%n%p", "\x1b[31mred", "\u202e rtl"])
        self.assertEqual([row["n"] for row in rows][8:12], [65536] * 4)
        self.assertNotEqual(names[9], names[10])  # they differ after 70,000 bytes; the hash at the end tells
        self.assertEqual(names[9][:65519], names[10][:65519])  # 64 KiB less '#' and 16 digits
        text = self.llmprof("report", recording.path, "--full").stdout
        self.assertNotIn("\x1b", text)

    def test_a_million_distinct_names(self):
        """T05: 65,534 of them have room; the others are one name, <other>, and are counted."""
        names = 1000000
        recording = self.both(self.victim("distinct_names", "distinct", names), limit_s=240)
        self.check(recording, expect=("string_table_full",), allow=("buffer_full",))
        marks = recording.query("SELECT count(*) AS n, count(*) FILTER (WHERE name = '<other>') AS other FROM range")[0]
        lost = recording.total("buffer_full")
        self.assertEqual(marks["n"] + lost, names)
        self.assertGreaterEqual(recording.total("string_table_full"), marks["other"])
        self.assertLessEqual(marks["other"], names - 65000)


if __name__ == "__main__":
    unittest.main()
