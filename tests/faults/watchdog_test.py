"""The watchdog on programs that really hang: their stacks are shown, then they are gone."""
import pathlib
import subprocess
import sys
import unittest

from oracle import FaultCase
import watchdog

HANGS = """#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
__attribute__((noinline)) void takes_second_then_first(void) {
  pthread_mutex_lock(&second);
  pthread_barrier_wait(&both);
  pthread_mutex_lock(&first);
}
static void* body(void* unused) { takes_second_then_first(); return unused; }
__attribute__((noinline)) void takes_first_then_second(void) {
  pthread_mutex_lock(&first);
  pthread_barrier_wait(&both);
  pthread_mutex_lock(&second);
}
int main(void) {
  pthread_t thread;
  pthread_barrier_init(&both, 0, 2);
  if (fork() == 0) for (;;) pause();
  pthread_create(&thread, 0, body, 0);
  takes_first_then_second();
  return 0;
}
"""


def exists(pid):
    try:
        return watchdog._stat(pid)[1][0] not in "ZX"
    except OSError:
        return False


class Watchdog(FaultCase):
    def build(self):
        self.run_command(["cc", "-g", "-O1", "-pthread", "-o", "hangs", self.write("hangs.c", HANGS)])
        return str(self.folder / "hangs")

    def assert_shows_the_deadlock(self, text):
        self.assertEqual(text.count("=== process"), 2, text)  # the child too
        if "Thread" in text:  # gdb was there and was permitted
            self.assertIn("takes_first_then_second", text)
            self.assertIn("takes_second_then_first", text)
        self.assertIn("thread", text)
        self.assertIn("futex", text)  # where the kernel sees both threads

    def test_a_deadlock_is_shown_and_ended(self):
        with self.assertRaises(watchdog.Hung) as raised:
            watchdog.run([self.build()], 2)
        self.assert_shows_the_deadlock(str(raised.exception))

    def test_around_a_command(self):
        words = [sys.executable, str(pathlib.Path(watchdog.__file__)), "2", "--"]
        done = subprocess.run([*words, self.build()], capture_output=True, text=True)
        self.assertEqual(done.returncode, 124)
        self.assert_shows_the_deadlock(done.stdout)
        for line in done.stdout.splitlines():
            if line.startswith("=== process"):
                self.assertFalse(exists(int(line.split()[2])))
        for command, status in ((["true"], 0), (["sh", "-c", "exit 3"], 3), (["sh", "-c", "kill -9 $$"], 137)):
            self.assertEqual(subprocess.run([*words, *command]).returncode, status)


if __name__ == "__main__":
    unittest.main()
