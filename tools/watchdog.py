#!/usr/bin/env python3
"""Runs a command with a time limit. If it hangs, prints the stacks of all threads of it and of its descendants before
ending them: `watchdog.py SECONDS -- COMMAND…`. Also a module, for tests that start programs themselves."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time


class Hung(AssertionError):
    """A program that did not end in time; the text has its stacks."""


def _stat(pid):
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()


def descendants(pid):
    """The process and everything below it, parents first."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                children.setdefault(int(_stat(entry.name)[1][1]), []).append(int(entry.name))
            except (OSError, ValueError):
                continue
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def _read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace").strip()
    except OSError as error:
        return f"({error.strerror})"


def _kernel_view(pid):
    lines = []
    for task in sorted(pathlib.Path(f"/proc/{pid}/task").glob("*"), key=lambda path: int(path.name))[:100]:
        lines.append(f"  thread {task.name} {_read(task / 'comm')}: state {_read(task / 'stat').rsplit(')', 1)[-1][:2]}"
                     f" in {_read(task / 'wchan') or '?'}, system call {_read(task / 'syscall')}")
        stack = _read(task / "stack")
        lines += ["    " + line for line in stack.splitlines()]
    return "\n".join(lines)


def _gdb_view(pid):
    if shutil.which("gdb") is None:
        return "(gdb is not installed)"
    words = ["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "set pagination off", "-ex", "thread apply all bt 40"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=60, stdin=subprocess.DEVNULL,
                              env=dict(os.environ, DEBUGINFOD_URLS="", LD_PRELOAD=""))
    except subprocess.TimeoutExpired:
        return "(gdb did not answer in 60 s)"
    return done.stdout + ("" if "Thread" in done.stdout else done.stderr)


def stacks(pid):
    """All threads of the process and its descendants: user stacks by gdb, and what the kernel says."""
    parts = []
    for one in descendants(pid):
        try:
            name = _stat(one)[0]
            command = _read(f"/proc/{one}/cmdline").replace("\0", " ")
            parts.append(f"=== process {one} {name}: {command}\n{_kernel_view(one)}\n{_gdb_view(one)}")
        except (OSError, ValueError):
            parts.append(f"=== process {one} has ended meanwhile")
    return "\n".join(parts)


def end(pid):
    for one in descendants(pid):
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            pass


def run(words, limit_s, **options):
    """As subprocess.run, capturing bytes; raises Hung with all stacks when the limit has passed."""
    options.setdefault("stdin", subprocess.DEVNULL)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **options)
    try:
        stdout, stderr = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        text = stacks(process.pid)
        end(process.pid)
        stdout, stderr = process.communicate()
        raise Hung(f"{words} did not end in {limit_s} s\nstdout: {stdout[-2000:]!r}\nstderr: {stderr[-2000:]!r}\n{text}")
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


def main(arguments):
    if len(arguments) < 3 or arguments[1] != "--":
        print(__doc__, file=sys.stderr)
        return 2
    limit_s = float(arguments[0])
    process = subprocess.Popen(arguments[2:])
    started = time.monotonic()
    try:
        status = process.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        print(f"watchdog: {arguments[2:]} did not end in {limit_s:g} s", flush=True)
        print(stacks(process.pid), flush=True)
        end(process.pid)
        process.wait()
        print(f"watchdog: ended it after {time.monotonic() - started:.0f} s", flush=True)
        return 124
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
