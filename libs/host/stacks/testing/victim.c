// A program whose stacks are known: main calls the scenario named by its first argument, which ends in spin(). Compiled
// with optimisation and without frame pointers. Runs until it is killed, or for the seconds given as second argument.
#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int through_library(int (*call)(int), int value);  // victim_library.c

volatile int sink;
static time_t until;

__attribute__((noinline, noclone)) int spin(int value) {
  while (time(NULL) < until) {
    for (int i = 0; i < 100000; ++i) sink += i ^ value;
  }
  return sink;
}

// Each adds something after the call, so that it is a call and not a jump.
__attribute__((noinline, noclone)) int chain_c(int value) { return spin(value) + 1; }
__attribute__((noinline, noclone)) int chain_b(int value) { return chain_c(value + 1) * 2; }
__attribute__((noinline, noclone)) int chain_a(int value) { return chain_b(value + 1) - 3; }

static int compare(const void* a, const void* b) {
  const int left = *(const int*)a, right = *(const int*)b;
  spin(left);
  return left - right;
}
__attribute__((noinline, noclone)) int sorts(void) {
  int values[64];
  for (int i = 0; i < 64; ++i) values[i] = 64 - i;
  qsort(values, 64, sizeof values[0], compare);
  return values[0];
}

__attribute__((noinline, noclone)) int allocates(int bytes) {
  char* memory = alloca((size_t)bytes);
  memset(memory, bytes, (size_t)bytes);
  sink += memory[bytes / 2];
  return chain_c(memory[1]) + memory[0];
}

// Most of the array is never touched: its pages are not in memory.
__attribute__((noinline, noclone)) int hollow(int value) {
  volatile char hole[32 << 10];
  hole[0] = (char)value;
  return chain_c(value) + hole[0];
}

__attribute__((noinline, noclone)) int recurses(int depth) {
  if (depth == 0) return chain_c(1) + 1;
  return recurses(depth - 1) + sink;
}

static void handler(int signal) { chain_c(signal); }
__attribute__((noinline, noclone)) int raises(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  return sink;
}

static void* thread_main(void* argument) {
  chain_a(*(int*)argument);
  return NULL;
}
__attribute__((noinline, noclone)) int threads(void) {
  pthread_t thread;
  int value = 1;
  pthread_create(&thread, NULL, thread_main, &value);
  pthread_join(thread, NULL);
  return sink;
}

// A function of hand-written assembler that moves the stack pointer and says nothing of it, as BLAS kernels do.
__asm__(
    ".text\n.type silent_frame, @function\n.globl silent_frame\nsilent_frame:\n.cfi_startproc\n"
    "subq $2104, %rsp\nmovq %rbx, (%rsp)\nmovq %rdi, %rax\nmovl %esi, %edi\n"
    "1: incq %rcx\nmovq %rcx, 8(%rsp)\ntestq $0xfffffff, %rcx\njnz 1b\n"
    "movq (%rsp), %rbx\naddq $2104, %rsp\nret\n.cfi_endproc\n.size silent_frame, .-silent_frame\n");
long silent_frame(void* nothing, int value);
__attribute__((noinline, noclone)) long assembler(void) {
  long sum = 0;
  while (time(NULL) < until) sum += silent_frame(NULL, 1);
  return sum;
}

// Nearly all of its time is the kernel's.
__attribute__((noinline, noclone)) int kernel_work(void) {
  static char buffer[1 << 20];
  const int zeros = open("/dev/zero", O_RDONLY);
  while (time(NULL) < until) sink += (int)read(zeros, buffer, sizeof buffer);
  return sink;
}

int main(int count, char** arguments) {
  const char* scenario = count > 1 ? arguments[1] : "chain";
  until = time(NULL) + (count > 2 ? atoi(arguments[2]) : 20);
  if (strcmp(scenario, "chain") == 0) return chain_a(count) & 1;
  if (strcmp(scenario, "library") == 0) return through_library(chain_b, count) & 1;
  if (strcmp(scenario, "sort") == 0) return sorts() & 1;
  if (strcmp(scenario, "alloca") == 0) return allocates(count * 100) & 1;
  if (strcmp(scenario, "hollow") == 0) return hollow(count) & 1;
  if (strcmp(scenario, "deep") == 0) return recurses(20000) & 1;
  if (strcmp(scenario, "signal") == 0) return raises() & 1;
  if (strcmp(scenario, "thread") == 0) return threads() & 1;
  if (strcmp(scenario, "kernel") == 0) return kernel_work() & 1;
  if (strcmp(scenario, "assembler") == 0) return (int)assembler() & 1;
  if (strcmp(scenario, "unlinked") == 0) {
    char path[4096] = "";
    return readlink("/proc/self/exe", path, sizeof path - 1) > 0 && unlink(path) == 0 ? chain_a(count) & 1 : 2;
  }
  if (strcmp(scenario, "fork") == 0) {
    if (fork() == 0) return chain_a(count) & 1;
    sleep(20);
  }
  return 2;
}
