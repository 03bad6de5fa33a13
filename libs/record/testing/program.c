// A program with one behaviour per first argument, for the tests of launching and supervising.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t interrupts = 0;

static void on_interrupt(int number) {
  (void)number;
  ++interrupts;
}

static void write_count(const char* path, const char* text) {
  char beside[4096];
  snprintf(beside, sizeof beside, "%s.new", path);
  FILE* file = fopen(beside, "w");
  if (file == NULL) exit(9);
  fputs(text, file);
  fclose(file);
  rename(beside, path);
}

// Says "ready", waits for the first SIGINT, then a moment for a second one, and writes how many came.
static int count_interrupts(const char* path) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, NULL);
  write_count(path, "ready");
  for (int i = 0; i < 600 && interrupts == 0; ++i) usleep(50000);
  for (int i = 0; i < 8; ++i) usleep(50000);
  char text[16];
  snprintf(text, sizeof text, "%d", (int)interrupts);
  write_count(path, text);
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const char* value = argc > 2 ? argv[2] : "";
  if (strcmp(what, "exit") == 0) return atoi(value);
  if (strcmp(what, "signal") == 0) {
    raise(atoi(value));
    pause();
  }
  if (strcmp(what, "count-interrupts") == 0) return count_interrupts(value);
  if (strcmp(what, "sleep") == 0) {
    sleep((unsigned)atoi(value));
    return 0;
  }
  if (strcmp(what, "arguments") == 0) {
    for (int i = 0; i < argc; ++i) puts(argv[i]);
    return 0;
  }
  if (strcmp(what, "variable") == 0) {
    const char* text = getenv(value);
    puts(text != NULL ? text : "(unset)");
    return 0;
  }
  if (strcmp(what, "copy") == 0) {
    for (int c = getchar(); c != EOF; c = getchar()) putchar(c);
    return 0;
  }
  if (strcmp(what, "blocked") == 0) {  // signals that a program would inherit from a careless launcher
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int number = 1; number < 32; ++number) {
      struct sigaction action;
      memset(&action, 0, sizeof action);
      sigaction(number, NULL, &action);
      if (sigismember(&mask, number) == 1) printf("blocked %d\n", number);
      if (action.sa_handler == SIG_IGN) printf("ignored %d\n", number);
    }
    return 0;
  }
  return 8;
}
