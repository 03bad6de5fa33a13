"""Runs the built llmprof in a scratch folder with its own peak cache, so that tests never touch the user's files."""
import fcntl
import json
import os
import pathlib
import pty
import shutil
import struct
import subprocess
import tempfile
import termios
import unittest

BIN = pathlib.Path(os.environ.get("LLMPROF_BIN", pathlib.Path(__file__).resolve().parents[2] / "build/bin"))
LLMPROF = str(BIN / "llmprof")
WORKLOAD = str(BIN / "llmprof-workload")
SYSTEM_PYTHON = "/usr/bin/python3"  # the interpreter Debian's numpy belongs to


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="llmprof-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("LLMPROF_")}
        self.environment["LLMPROF_CACHE_DIR"] = str(self.folder / "cache")
        self.environment["LLMPROF_NO_REPORT"] = "1"  # screen_test.py looks at the report behind a recording
        self.environment["XDG_CONFIG_HOME"] = str(self.folder / "config")

    def run_command(self, words, status=0, timeout=600, **options):
        done = subprocess.run(words, cwd=self.folder, env=options.pop("env", self.environment), capture_output=True,
                              text=True, timeout=timeout, **options)
        if status is not None:
            self.assertEqual(done.returncode, status, f"{words}\nstdout: {done.stdout}\nstderr: {done.stderr}")
        return done

    def llmprof(self, *words, status=0, **options):
        return self.run_command([LLMPROF, *words], status=status, **options)

    def on_a_terminal(self, words, columns=80, lines=50, **variables):
        """What a terminal of this size gets to see, both streams."""
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        environment = dict(self.environment, TERM="xterm", **variables)
        environment.pop("COLUMNS", None)
        process = subprocess.Popen(words, cwd=self.folder, env=environment, stdin=terminal, stdout=terminal,
                                   stderr=terminal, start_new_session=True)
        os.close(terminal)
        shown = b""
        try:
            while chunk := os.read(controller, 65536):
                shown += chunk
        except OSError:  # the last one closed it
            pass
        os.close(controller)
        process.wait(60)
        return shown.decode(errors="replace").replace("\r\n", "\n")

    def record(self, name, *command, options=("--no-peaks",), status=0, **more):
        return self.llmprof("record", "-o", name, *options, "--", *command, status=status, **more)

    def report(self, name):
        return json.loads(self.llmprof("report", name, "--json").stdout)

    def query(self, name, sql):
        return json.loads(self.llmprof("query", name, sql, "--json").stdout)["rows"]

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)
