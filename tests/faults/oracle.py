"""What every fault test asks: is the program as it would be alone, is no record wrong, and is everything that is missing
counted and shown? The victims number their events and keep a ledger of them (victim.h)."""
import hashlib
import json
import os
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "tools")]
import watchdog
from harness import BIN, LLMPROF, SYSTEM_PYTHON, Case

FAULTS = pathlib.Path(os.environ.get("LLMPROF_FAULTS", ROOT / "build/tests/faults"))
COLLECT = pathlib.Path(os.environ.get("LLMPROF_COLLECT", FAULTS.parent / "collect"))
VICTIM = str(FAULTS / "fault_victim")
SHIM = str(FAULTS / "libfault_shim.so")
BATCH = str(ROOT / "tests/faults/batch.py")
SOAK = os.environ.get("LLMPROF_SOAK", "") not in ("", "0")  # the same with larger numbers
LIMIT_S = 120  # a hung program is shown after this long; a busy machine is slow

# Losses that count single events. Everything else says something about a process or a file.
COUNTED = ("buffer_full", "write_failed", "size_limit", "reentered", "thread_table_full", "forked_after_cuda",
           "after_exit")
# A log with one of these was not written by a collector that works.
NEVER = ("damaged_block", "missing_block", "lost_name", "unknown_record", "bad_time", "log_unreadable", "unbalanced_pop")
# What the recorder could not see from outside has nothing to do with the collector.
FROM_OUTSIDE = ("no_peaks", "no_stack_samples", "samples_lost", "no_python_frames", "usage_unreadable")
TIMES = 16384  # victim.h


class Ledger:
    """What one process of a victim should have recorded, per stream."""

    def __init__(self, path):
        data = path.read_bytes()
        self.attempted, self.done, self.times, self.pid = (), (), None, 0
        if not any(data[:8]):  # killed before it had a ledger
            return
        streams, has_times, self.pid = struct.unpack_from("<QQQ", data)
        slots = struct.unpack_from(f"<{2 * streams}Q", data, 24)
        self.attempted, self.done = slots[0::2], slots[1::2]
        if has_times:
            times = struct.unpack_from(f"<{streams * TIMES}Q", data, 24 + 16 * streams)
            self.times = [times[i * TIMES:(i + 1) * TIMES] for i in range(streams)]

    def lost_seconds(self, stream, recovered):
        """Age of the first event that is missing when the last one was made."""
        done = self.done[stream]
        if recovered >= done or done - recovered >= TIMES:
            return 0 if recovered >= done else float("inf")
        return (self.times[stream][(done - 1) % TIMES] - self.times[stream][recovered % TIMES]) / 1e9


def ledgers(folder):
    return {path.name: Ledger(path) for path in folder.iterdir() if not path.name.startswith(".")}


def noted(folder, label, what):
    return int((folder / f".{label}.{what}").read_text())


def files_of(folder):
    """Everything a program left in its folder: kind, mode, content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        found[str(path.relative_to(folder))] = (oct(info.st_mode), content)
    return found


class Recording:
    """One recorded run of a victim, with all that can be asked about it."""

    def __init__(self, case, path, ledger_folder, tally=None):
        self.case, self.path, self.tally, self.ledger_folder = case, path, tally, ledger_folder
        self.ledgers = ledgers(ledger_folder)
        self.processes = {row["id"]: row for row in self.query(
            "SELECT id, pid, parent_pid, arguments, log, end_ns FROM process")}
        self.losses = self.query("SELECT process_id, name, sum(count) AS n, count(*) AS rows FROM loss GROUP BY ALL")
        self.streams = self.query(
            "SELECT process_id, name, payload >> 32 AS stream, count(*) AS n, count(DISTINCT payload) AS kinds, "
            "min(payload & 4294967295) AS low, max(payload & 4294967295) AS high, sum(backwards::INT) AS backwards "
            "FROM (SELECT *, payload <= lag(payload) OVER (PARTITION BY process_id, name, payload >> 32 "
            "ORDER BY begin_ns, id) AS backwards FROM range WHERE kind = 'mark' AND payload IS NOT NULL) GROUP BY ALL")
        by_events = {row["process_id"]: row["name"] for row in self.streams}
        by_pid = {}
        for label, ledger in self.ledgers.items():
            by_pid.setdefault(ledger.pid, []).append(label)
        self.labels = {i: self.find_label(i, by_events, by_pid) for i in self.processes}
        self.logged = {self.labels[i] for i, row in self.processes.items() if row["log"]}
        self.streams_of, self.losses_of = {}, {}
        for row in self.streams:
            self.streams_of.setdefault(row["name"], []).append(row)
        for row in self.losses:
            if row["process_id"] is not None:
                found = self.losses_of.setdefault(self.labels[row["process_id"]], {})
                found[row["name"]] = found.get(row["name"], 0) + row["n"]

    def query(self, sql):
        done = self.case.llmprof("query", self.path, sql, "--json", "--limit", "1000000")
        answer = json.loads(done.stdout)
        self.case.assertFalse(answer["truncated"])
        return answer["rows"]

    def total(self, name):
        return sum(row["n"] for row in self.losses if row["name"] == name)

    def names(self):
        return {row["name"] for row in self.losses}

    def label_of(self, process_id):
        return self.labels[process_id]

    def find_label(self, process_id, by_events, by_pid):
        """By its events; a process that has none in the run by its pid, or, after an exec, by the command."""
        process = self.processes[process_id]
        candidates = by_pid.get(process["pid"], [])
        if process_id in by_events or len(candidates) == 1:
            return by_events.get(process_id) or candidates[0]
        words = (process["arguments"] or "").split(" ")
        return words[2] if len(words) > 2 else None

    def of_label(self, label):
        """The losses of the process with this label."""
        return self.losses_of.get(label, {})

    def recovered(self, label):
        """Events in the run, per stream."""
        return {row["stream"]: row["n"] for row in self.streams_of.get(label, ())}

    def untold(self):
        """Labels whose log does not say all that is missing in it; then the folder must say it."""
        return [label for label, ledger in self.ledgers.items()
                if sum(self.recovered(label).values()) + self.counted(label) < sum(ledger.attempted)]

    def counted(self, label):
        return sum(self.of_label(label).get(name, 0) for name in COUNTED)

    def has_log(self, label):
        return label in self.logged


class FaultCase(Case):
    def victim(self, scenario, label, *arguments):
        return [VICTIM, scenario, label, *(str(argument) for argument in arguments)]

    def batch(self, children, at_once=2):
        """A command that runs many victims: see batch.py for what a child may ask for."""
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps({"victim": VICTIM, "shim": SHIM, "at_once": at_once, "children": children}))
        return [sys.executable, BATCH, str(plan)]

    def run_once(self, words, where, limit_s=LIMIT_S, env=None):
        for folder in (where, f"{where}.ledger"):
            (self.folder / folder).mkdir(exist_ok=True)
        environment = dict(self.environment, FAULT_LEDGER=str(self.folder / f"{where}.ledger"), **(env or {}))
        return watchdog.run(words, limit_s, cwd=self.folder / where, env=environment)

    def both(self, words, env=None, name="run", limit_s=LIMIT_S, host=False):
        """Runs the command alone and recorded, and holds one against the other. Returns the Recording. `host`: with the
        sampler outside the program too, which has no part in most of these faults."""
        alone = self.run_once(words, f"{name}.alone", limit_s, env)
        if BATCH in words:
            self.assertEqual(alone.returncode, 0, alone.stderr)
        path = self.folder / f"{name}.llmprof"
        options = ["--json", "--no-peaks", *([] if host else ["--no-host"]), "-o", str(path)]
        recorded = self.run_once([LLMPROF, "record", *options, "--", *words], f"{name}.recorded", limit_s, env)
        status = alone.returncode if alone.returncode >= 0 else 128 - alone.returncode
        lines = recorded.stderr.splitlines(keepends=True)
        theirs = b"".join(line for line in lines if not line.startswith((b"llmprof:", b'{"schema":"llmprof.')))
        self.assertEqual(recorded.returncode, status, recorded.stderr)
        self.assertEqual(recorded.stdout, alone.stdout)
        self.assertEqual(theirs, alone.stderr)
        self.assertEqual(files_of(self.folder / f"{name}.recorded"), files_of(self.folder / f"{name}.alone"))
        tally = json.loads(lines[-1])
        self.assertIsNone(tally["why"], tally)
        return Recording(self, str(path), self.folder / f"{name}.recorded.ledger", tally)

    def check(self, recording, expect=(), allow=(), unrecorded=(), late=(), killed=()):
        """The log oracle. `expect`: losses that must be there; `allow`: losses that may; `unrecorded`: labels whose
        process could not be recorded at all, which must then be said by collector_off; `late`: labels of processes that
        go on raising events while they exit, after the log was closed; `killed`: labels of processes that may have died
        before they had a log."""
        allow = {*expect, *allow, *FROM_OUTSIDE, "abnormal_end"}
        self.assertLessEqual(set(expect), recording.names())
        self.assertEqual(recording.names() - allow, set(), recording.losses)
        self.assertEqual(recording.names() & (set(NEVER) - allow), set(), recording.losses)
        for row in recording.streams:
            ledger = recording.ledgers.get(row["name"])
            self.assertIsNotNone(ledger, f"a label that nobody used: {row}")
            self.assertLess(row["stream"], len(ledger.attempted), row)
            self.assertEqual(row["n"], row["kinds"], f"an event twice: {row}")
            self.assertEqual(row["backwards"] or 0, 0, f"out of order: {row}")
            self.assertLess(row["high"], ledger.attempted[row["stream"]], f"an event that was never made: {row}")
        for label, ledger in recording.ledgers.items():
            if label not in unrecorded:
                self.check_label(recording, label, ledger, label in late, label in killed)
        if unrecorded:
            self.assertEqual(recording.total("collector_off"), len(unrecorded))
        self.check_shown(recording)

    def check_label(self, recording, label, ledger, late, killed):
        """Made = recovered + counted, for a process that ended in order. One that was cut off may lack its last second."""
        losses = recording.of_label(label)
        recovered = recording.recovered(label)
        counted = recording.counted(label)
        missing = sum(ledger.attempted) - sum(recovered.values()) - counted
        where = f"{label}: made {sum(ledger.attempted)}, recovered {sum(recovered.values())}, losses {losses}"
        self.assertGreaterEqual(missing, 0, where)
        if "abnormal_end" not in losses:
            self.assertTrue(missing == 0 or late or (killed and not recording.has_log(label)), where)
            return
        if ledger.times is None or counted:
            return
        for stream in range(len(ledger.attempted)):
            row = next((r for r in recording.streams_of.get(label, ()) if r["stream"] == stream), None)
            there = row["n"] if row else 0
            if row:  # what is missing is the end, nothing in between
                self.assertEqual((row["low"], row["high"]), (0, there - 1), where)
            self.assertLessEqual(ledger.lost_seconds(stream, there), 1.0, f"{where}, stream {stream}")

    def check_shown(self, recording):
        """record, report and check say the same about what was lost, as JSON and as text."""
        expected = {name: recording.total(name) for name in recording.names()}
        for verb in ("report", "check"):
            answer = json.loads(self.llmprof(verb, recording.path, "--json").stdout)
            shown = {}
            for loss in answer["losses"]:
                shown[loss["name"]] = shown.get(loss["name"], 0) + loss["count"]
            self.assertEqual(shown, expected, verb)
        if recording.tally is not None:
            shown = {}
            for loss in recording.tally["losses"]:
                shown[loss["name"]] = shown.get(loss["name"], 0) + loss["count"]
            self.assertEqual(shown, expected)
        if set(expected) - set(FROM_OUTSIDE):
            for words in (("report", recording.path, "losses"), ("check", recording.path)):
                text = self.llmprof(*words).stdout
                for name in expected:
                    self.assertIn(name, text, words)
            screen = " ".join(self.llmprof("report", recording.path).stdout.split())
            for name in expected:
                self.assertIn(name.replace("_", " "), screen)
