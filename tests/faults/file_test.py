"""Disks that are full, writes that fail, folders and descriptors that go away, limits and clocks."""
import errno
import pathlib
import shutil
import subprocess
import sys
import unittest

from oracle import LLMPROF, SOAK, FaultCase, Recording

ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EFBIG", "EPIPE", "EBADF")
# Every function of the C library that the collector calls and that can fail, and how. More calls than there are do
# nothing: the last rows of each series show that the program ends as it should without a fault.
CALLS = (("open", errno.EMFILE, 6), ("open", errno.EACCES, 3), ("mmap", errno.ENOMEM, 6), ("pthread_create", errno.EAGAIN, 2),
         ("pthread_attr_init", errno.ENOMEM, 2), ("pthread_key_create", errno.EAGAIN, 2),
         ("pthread_setspecific", errno.ENOMEM, 2), ("fstat", errno.EIO, 6), ("ftruncate", errno.EIO, 2),
         ("fcntl", errno.EMFILE, 2), ("getrlimit", errno.EINVAL, 2), ("gethostname", errno.ENAMETOOLONG, 2),
         ("read", errno.EIO, 4), ("readlink", errno.EACCES, 2), ("access", errno.EIO, 4), ("prctl", errno.EINVAL, 4),
         ("madvise", errno.EINVAL, 2), ("munmap", errno.ENOMEM, 4))
EVENTS = 2000  # with pauses: several blocks


def fault(label, call, error, first, last=None, **more):
    environment = {"FAULT_CALL": call, "FAULT_FROM": str(first), "FAULT_TO": str(last or first),
                   "FAULT_ERROR": str(error), **more.pop("env", {})}
    return {"label": label, "scenario": "limited", "arguments": ["memlock", 0, EVENTS], "shim": True, "env": environment,
            **more}


class Writes(FaultCase):
    def test_every_write_fails_in_turn(self):
        """S03: the N-th write of the collector fails, for every N there is, with every error."""
        children = []
        for name in ERRORS:
            for n in range(1, 13):
                children.append(fault(f"{name}-{n}", "write", getattr(errno, name), n))
        for n in range(1, 13):
            children.append(fault(f"EINTR-{n}", "write", errno.EINTR, n))  # tried again: nothing is lost
            children.append(fault(f"short-{n}", "write", -1, n))           # the rest follows
        recording = self.both(self.batch(children, at_once=4))
        failed = [c["label"] for c in children if c["label"].endswith("-1") and c["label"].split("-")[0] in ERRORS]
        # The first write is the header: without it there is no log, and that is said.
        self.check(recording, expect=("write_failed", "collector_off"), unrecorded=failed)
        for child in children:
            name, n = child["label"].split("-")
            if name in ("EINTR", "short"):
                self.assertEqual(recording.recovered(child["label"]), {0: EVENTS})
                self.assertEqual(recording.of_label(child["label"]), {})
        for name in ERRORS:
            lost = [recording.of_label(f"{name}-{n}").get("write_failed", 0) for n in range(2, 13)]
            self.assertGreater(sum(lost), 0, name)

    def test_every_write_fails_from_then_on(self):
        """S01, S03: nothing can be written any more, not even that. Then the folder says it."""
        children = [fault(f"gone-{n}", "write", errno.ENOSPC, n, 100000) for n in range(2, 8)]
        recording = self.both(self.batch(children, at_once=4))
        self.assertIn("gone-2", recording.untold())  # a slow machine makes fewer writes, so not all of them
        self.check(recording, expect=("abnormal_end", "collector_off"), unrecorded=recording.untold())

    def test_the_program_hears_nothing_of_it(self):
        """S01: the collector is silent in the program; `llmprof record` says what was lost, and what to do."""
        plan = self.batch([fault("silent", "write", errno.ENOSPC, 4, 6)])
        done = self.run_once([LLMPROF, "record", "--no-peaks", "-o", str(self.folder / "run"), "--", *plan], "silent")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"silent: 0 b'limited\\n' b''", done.stdout)  # status, stdout and stderr of the program
        self.assertRegex(done.stderr.decode(), r"LOST: write_failed, [\d.]+ \w*.*No space left on device.*free disk space")

    def test_space_returns(self):
        """S02: the disk is full for a while. The log has ended by then; how much is missing is told when it can be."""
        children = [fault(f"returns-{n}", "write", errno.ENOSPC, n, n + 3) for n in range(2, 8)]
        recording = self.both(self.batch(children, at_once=4))
        self.check(recording, expect=("write_failed",))

    def test_full_at_every_size(self):
        """S01: the disk is full after k bytes, for k from nothing to all that the log has."""
        sizes = [*range(0, 700, 13), *range(700, 30000, 977 if not SOAK else 101)]
        children = [{"label": f"full-{k}", "scenario": "limited", "arguments": ["memlock", 0, EVENTS], "shim": True,
                     "env": {"FAULT_DISK_BYTES": str(k)}} for k in sizes]
        recording = self.both(self.batch(children, at_once=4))
        # Where not even the loss has room, the log ends without a word and the folder has the reason.
        self.assertLessEqual({f"full-{k}" for k in sizes if k < 64}, set(recording.untold()))
        self.check(recording, expect=("collector_off", "abnormal_end", "write_failed"), unrecorded=recording.untold())

    def test_every_call_fails_in_turn(self):
        """S09: descriptors, memory, threads, anything the collector asks the system for."""
        children = []
        for call, error, calls in CALLS:
            for n in range(1, calls + 1):
                children.append(fault(f"{call}-{error}-{n}", call, error, n))
            children.append(fault(f"{call}-{error}-all", call, error, 1, 100000))
        recording = self.both(self.batch(children, at_once=4))
        # Which call it was decides whether there is a log; there is one or there is the reason.
        without = recording.untold()
        off = recording.query("SELECT detail, sum(count) AS n FROM loss WHERE name = 'collector_off' GROUP BY ALL")
        self.assertEqual(sum(row["n"] for row in off), len(without), (without, off))
        self.assertTrue(any(label.startswith(("open-", "mmap-", "pthread_create-")) for label in without))
        self.check(recording, expect=("collector_off",), allow=("write_failed",), unrecorded=without)


class Limits(FaultCase):
    def test_limits(self):
        """S03, S09: RLIMIT_FSIZE at many sizes, from before the first event and after it; descriptors, memory."""
        children = [{"label": f"fsize-{k}", "scenario": "limited", "arguments": ["fsize", k, EVENTS]}
                    for k in (0, 1, 63, 64, 65, 300, 1000, 5000, 20000, 10000000)]
        children += [{"label": f"later-{k}", "scenario": "limited", "arguments": ["fsize", k, EVENTS, 10]}
                     for k in (0, 1, 64, 1000)]
        children += [{"label": "nofile-3", "scenario": "limited", "arguments": ["nofile", 3, EVENTS]},
                     {"label": "nofile-10", "scenario": "limited", "arguments": ["nofile", 10, EVENTS]},
                     {"label": "later-nofile-3", "scenario": "limited", "arguments": ["nofile", 3, EVENTS, 10]},
                     {"label": "as-30M", "scenario": "limited", "arguments": ["as", 30 << 20, EVENTS]},
                     {"label": "later-as-30M", "scenario": "limited", "arguments": ["as", 30 << 20, EVENTS, 10]},
                     {"label": "memlock", "scenario": "limited", "arguments": ["memlock", 0, EVENTS]},
                     {"label": "stack", "scenario": "limited", "arguments": ["stack", 16384, EVENTS]}]
        recording = self.both(self.batch(children, at_once=4))
        off = {"fsize-0", "fsize-1", "fsize-63", "nofile-3", "as-30M"}
        self.assertLessEqual(off, set(recording.untold()))
        self.check(recording, expect=("write_failed", "collector_off"), unrecorded=recording.untold())
        for label in ("nofile-10", "later-nofile-3", "later-as-30M", "memlock", "stack"):
            self.assertGreaterEqual(recording.recovered(label)[0], EVENTS)
        reasons = recording.query("SELECT detail, count(*) AS n FROM loss WHERE name = 'collector_off' GROUP BY ALL")
        self.assertEqual({row["detail"] for row in reasons},
                         {"File too large: log", "Too many open files: log", "Cannot allocate memory: memory"})

    def test_umask(self):
        """S09: the log is private whatever the program's umask is."""
        words = ["sh", "-c", f"'{self.victim('', '')[0]}' unmasked mask; "
                 'for f in "$LLMPROF_CAPTURE_DIR"/*.log; do [ -e "$f" ] && stat -c %a "$f" >> "$FAULT_LEDGER/.modes"; done; true']
        recording = self.both(words)
        self.check(recording)
        self.assertEqual(set((recording.ledger_folder / ".modes").read_text().split()), {"600"})

    def test_descriptors_closed_and_taken(self):
        """S03: closefrom(3), then the program takes every number between 400 and 700 for a file of its own. Not one
        byte of ours gets into it."""
        recording = self.both(self.victim("close_descriptors", "close"))
        self.check(recording, expect=("write_failed",))
        self.assertEqual(recording.recovered("close"), {0: 10})

    def test_seccomp(self):
        """S09: opening files is forbidden, before the first event or after it."""
        children = [{"label": f"opens-{when}", "scenario": "no_more_opens", "arguments": [when]}
                    for when in ("before", "after")]
        recording = self.both(self.batch(children))
        self.check(recording, expect=("collector_off",), unrecorded=("opens-before",))
        self.assertEqual(recording.recovered("opens-after"), {0: 110})

    def test_clock_steps(self):
        """S07: wall time jumps an hour ahead and back at every reading. Durations and order know nothing of it."""
        children = [{"label": "clock", "scenario": "run", "arguments": [3000, 1000], "shim": True,
                     "env": {"FAULT_CLOCK_STEP_S": "3600"}}]
        recording = self.both(self.batch(children))
        self.check(recording)
        rows = recording.query("SELECT (max(begin_ns) - min(begin_ns)) / 1e9 AS seconds FROM range")
        self.assertGreater(rows[0]["seconds"], 2.9)  # 3,000 pauses of 1 ms
        self.assertLess(rows[0]["seconds"], 600)     # and not 3,600
        wall = recording.query("SELECT max(wall_ns - ts_ns) - min(wall_ns - ts_ns) AS d FROM clock_sync "
                               "WHERE process_id IS NOT NULL")
        self.assertGreater(wall[0]["d"], 3500e9)  # the steps are there to see


class Folders(FaultCase):
    def test_deleted_files(self):
        """S04: the logs are deleted under the program, and the folder it stands in."""
        children = [{"label": "cwd", "scenario": "delete_files", "arguments": ["cwd"]}]
        recording = self.both(self.batch(children), name="cwd")
        self.check(recording)
        recording = self.both(self.victim("delete_files", "logs", "log"), name="logs")
        self.check(recording, expect=("collector_off",), unrecorded=("logs",))

    def test_the_recording_is_deleted(self):
        """The program removes the whole recording. It runs to its end; llmprof says what happened."""
        words = self.victim("delete_files", "all", "folder")
        done = self.run_once([LLMPROF, "record", "--no-peaks", "-o", str(self.folder / "run"), "--", *words], "deleted")
        self.assertEqual(done.stdout, b"deleted\n")
        self.assertIn(done.returncode, (0, 2))
        self.assertIn(b"llmprof:", done.stderr)

    def test_folders_that_cannot_be_used(self):
        """S04: missing, a file, read-only, relative, too long, somebody else's, no HOME."""
        (self.folder / "file").write_text("")
        places = {"missing": "/nonexistent/x", "file": str(self.folder / "file"), "readonly": "/proc", "relative": "here",
                  "long": "/" + "x" * 4096, "empty": ""}
        children = [{"label": name, "scenario": "run", "arguments": [100], "env": {"LLMPROF_CAPTURE_DIR": place}}
                    for name, place in places.items()]
        children.append({"label": "homeless", "scenario": "run", "arguments": [100], "env": {"HOME": "", "TMPDIR": "/x"}})
        recording = self.both(self.batch(children))
        self.assertEqual(recording.recovered("homeless"), {0: 100})
        for name in places:
            self.assertEqual(recording.recovered(name), {})
            del recording.ledgers[name]
        self.check(recording)

    def test_something_else_in_place_of_the_log(self):
        """S04: links and pipes under the names of the logs. They are left alone, the log gets the next number."""
        script = self.write("plant.py", """
import os, subprocess, sys
folder = os.environ.get("LLMPROF_CAPTURE_DIR")
def plant():
    if folder is None: return
    ticks = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
    name = f"{folder}/{os.uname().nodename}-{os.getpid()}-{ticks}"
    os.symlink("/etc/passwd", f"{name}-0.log")
    os.mkfifo(f"{name}-1.log")
    os.mkdir(f"{name}-2.log")
before = open("/etc/passwd").read()
done = subprocess.run(sys.argv[1:], preexec_fn=plant)
print(done.returncode, before == open("/etc/passwd").read())
""")
        recording = self.both([sys.executable, script, *self.victim("run", "planted", 100)])
        self.check(recording, expect=("log_unreadable",))
        self.assertEqual(recording.total("log_unreadable"), 3)
        self.assertEqual(recording.recovered("planted"), {0: 100})

    def test_long_paths(self):
        """S04: a run as deep as a path may be."""
        deep = self.folder
        while len(str(deep)) < 2900:
            deep = deep / ("d" * 200)
        deep.mkdir(parents=True)
        words = [LLMPROF, "record", "--json", "--no-peaks", "-o", str(deep / "run"), "--", *self.victim("run", "deep", 100)]
        done = self.run_once(words, "deep")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check(Recording(self, str(deep / "run.llmprof"), self.folder / "deep.ledger"))


# Runs in a mount namespace of its own: a disk of `size` bytes, which grows after the program has ended.
ON_SMALL_DISK = """
set -e
mount -t tmpfs -o size=$1,mode=700 none "$2"
shift 2
status=0
"$@" || status=$?
df --output=avail "$FAULT_DISK" | tail -n 1 >&2
mount -o remount,size=256m "$FAULT_DISK"
cp -r "$FAULT_DISK"/. "$FAULT_OUT"
exit $status
"""


class SmallDisk(FaultCase):
    def namespace(self):
        """How to get a mount namespace here; None: not at all."""
        for words in (["unshare", "-m"], ["unshare", "-rm"]):
            probe = [*words, "sh", "-c", f"mount -t tmpfs none {self.folder}"]
            if shutil.which("unshare") and subprocess.run(probe, capture_output=True).returncode == 0:
                return words
        return None

    def test_full_tmpfs(self):
        """S01: a real small disk, from too small for anything to nearly enough. The recording that is left is read
        once there is room again."""
        space = self.namespace()
        if space is None:
            self.skipTest("no mount namespace here: the full disk was simulated only (Writes.test_full_at_every_size)")
        script = self.write("disk.sh", ON_SMALL_DISK)
        alone = self.run_once(self.victim("limited", "disk", "memlock", 0, 20000), "alone")
        for pages in (4, 6, 8, 10, 12, 16, 24, 32, 48):
            with self.subTest(pages):
                disk, out = self.folder / f"disk-{pages}", self.folder / f"out-{pages}"
                disk.mkdir(), out.mkdir()
                words = [*space, "bash", script, str(pages * 4096), str(disk), LLMPROF, "record", "--no-peaks", "--no-host",
                         "-o", str(disk / "run"), "--", *self.victim("limited", "disk", "memlock", 0, 20000)]
                done = self.run_once(words, f"disk{pages}", env={"FAULT_DISK": str(disk), "FAULT_OUT": str(out)})
                if b"disk-" in done.stderr and b"record.json" in done.stderr and not done.stdout:
                    self.assertEqual(done.returncode, 125, done.stderr)  # no room even to begin: refused before the start
                    continue
                self.assertEqual(done.stdout, alone.stdout, done.stderr)
                self.assertIn(done.returncode, (alone.returncode, 2), done.stderr)
                recording = Recording(self, str(out / "run.llmprof"), self.folder / f"disk{pages}.ledger")
                self.check(recording, allow=("write_failed", "collector_off", "log_unreadable", "torn_tail"),
                           unrecorded=("disk",) if recording.total("collector_off") else ())


class Memory(FaultCase):
    def test_killed_for_memory(self):
        """C04: the kernel's OOM killer in a memory cgroup; as SIGKILL."""
        group = pathlib.Path("/sys/fs/cgroup/memory/llmprof-fault-test")
        limit = "memory.limit_in_bytes"
        if not group.parent.exists():
            group, limit = pathlib.Path("/sys/fs/cgroup/llmprof-fault-test"), "memory.max"
        try:
            group.mkdir()
            self.addCleanup(group.rmdir)
            (group / limit).write_text(str(64 << 20))
        except OSError as error:
            self.skipTest(f"no memory cgroup here: not verified ({error})")
        script = self.write("eat.sh", f"echo $$ > {group}/cgroup.procs\nexec \"$@\"\n")
        words = ["sh", script, *self.victim("eat_memory", "eat", 1 << 30)]
        recording = self.both(words)
        self.check(recording, expect=("abnormal_end",), allow=("torn_tail",))
        self.assertEqual(recording.tally["exit_status"], 137)
        self.assertGreater(recording.recovered("eat")[0], 0)


if __name__ == "__main__":
    unittest.main()
