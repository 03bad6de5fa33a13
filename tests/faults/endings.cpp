// Ways in which a program ends.

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "victim.h"

namespace fault {
namespace {

Ledger* ledger;  // of the running scenario, for handlers

// EVENTS [PAUSE_US [STATUS]]
int run(const Arguments& arguments) {
  Ledger mine(arguments[0]);
  mine.emit(0, static_cast<std::uint64_t>(number(arguments, 1, 100)), static_cast<unsigned>(number(arguments, 2, 0)));
  print_process_state();
  std::printf("%s done\n", arguments[0].c_str());
  std::fprintf(stderr, "%s on stderr\n", arguments[0].c_str());
  return static_cast<int>(number(arguments, 3, 0));
}

// THREADS PAUSE_US: events until somebody kills it.
int until_killed(const Arguments& arguments) {
  const long count = number(arguments, 1, 1);
  const auto pause_us = static_cast<unsigned>(number(arguments, 2, 100));
  Ledger mine(arguments[0], static_cast<std::size_t>(count), true);
  std::vector<std::thread> threads;
  for (long i = 1; i < count; ++i) threads.emplace_back([&, i] { mine.emit(i, ~0ull, pause_us); });
  mine.emit(0, ~0ull, pause_us);
  return 0;
}

void say(const char* text) { (void)!write(STDOUT_FILENO, text, std::strlen(text)); }

[[noreturn]] void crash() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
  std::abort();
}

void on_segv(int) {
  ledger->emit(0);  // events in a handler
  say("handler\n");
  _exit(9);
}

void handle(int signal, void (*handler)(int), int flags = 0) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
}

void use_alternate_stack() {
  static char memory[1 << 16];
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = sizeof(memory);
  sigaltstack(&stack, nullptr);
}

int overflow_stack(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  ledger->emit(0);
  return depth < 0 ? 0 : overflow_stack(depth + 1) + frame[0];
}

void throw_error() { throw std::runtime_error("nobody catches this"); }
void throw_through_noexcept() noexcept { throw_error(); }

struct Way {
  const char* name;
  void (*go)();
};

constexpr Way kWays[] = {
    {"exit", [] { std::exit(4); }},
    {"_exit", [] { _exit(5); }},
    {"quick_exit",
     [] {
       std::at_quick_exit([] { say("at_quick_exit\n"); });
       std::quick_exit(6);
     }},
    {"abort", [] { std::abort(); }},
    {"throw", throw_error},
    {"noexcept", throw_through_noexcept},
    {"thread_throw", [] { std::thread(throw_error).join(); }},
    {"segv", [] { crash(); }},
    {"segv_handler",
     [] {
       handle(SIGSEGV, on_segv);
       crash();
     }},
    {"segv_altstack",
     [] {
       use_alternate_stack();
       handle(SIGSEGV, on_segv, SA_ONSTACK);
       crash();
     }},
    {"stack_overflow", [] { overflow_stack(0); }},
    {"stack_overflow_altstack",
     [] {
       use_alternate_stack();
       handle(SIGSEGV, on_segv, SA_ONSTACK);
       overflow_stack(0);
     }},
    {"fpe", [] { raise(SIGFPE); }},
    {"ill", [] { __builtin_trap(); }},
    {"bus", [] { raise(SIGBUS); }},
    {"pipe", [] { raise(SIGPIPE); }},
    {"sigterm", [] { raise(SIGTERM); }},
    {"sigterm_handled",
     [] {
       handle(SIGTERM, [](int) { say("term\n"); });
       raise(SIGTERM);
       ledger->emit(0);
       std::exit(7);
     }},
    {"sigterm_ignored",
     [] {
       handle(SIGTERM, SIG_IGN);
       raise(SIGTERM);
       ledger->emit(0);
       std::exit(8);
     }},
    {"sigkill", [] { raise(SIGKILL); }},
    {"exit_in_atexit",
     [] {
       std::atexit([] {
         ledger->emit(0);
         _exit(10);
       });
       std::exit(0);
     }},
    {"exit_in_thread",
     [] {
       std::thread([] { std::exit(11); }).detach();
       pause();
     }},
    {"exit_in_two_threads",
     [] {
       std::atexit([] {
         say("in exit\n");
         usleep(20000);  // the other thread gets as far as exit() too
         _exit(12);
       });
       std::thread([] { std::exit(12); }).detach();
       std::exit(12);
     }},
    {"exit_in_handler",
     [] {
       handle(SIGALRM, [](int) { _exit(13); });
       ualarm(5000, 0);
       for (;;) ledger->emit(0);
     }},
    {"busy_exit",
     [] {
       std::thread([] {
         for (;;) ledger->emit(1);
       }).detach();
       usleep(10000);
       std::exit(14);
     }},
    {"events_in_atexit",
     [] {
       std::atexit([] { ledger->emit(0, 50, 0); });
       std::exit(15);
     }},
    {"main_thread_exits",
     [] {
       std::thread([] {
         usleep(20000);
         ledger->emit(1, 50, 0);
         std::exit(16);
       }).detach();
       pthread_exit(nullptr);
     }},
};

// EVENTS PAUSE_MS WAY: the pause lets what came before reach the log.
int end_by(const Arguments& arguments) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  ledger = new Ledger(arguments[0], 2);  // outlives main
  ledger->emit(0, static_cast<std::uint64_t>(number(arguments, 1, 100)), 0);
  usleep(static_cast<useconds_t>(number(arguments, 2, 0)) * 1000);
  print_process_state();
  for (const Way& way : kWays) {
    if (arguments.at(3) == way.name) way.go();
  }
  return 99;
}

std::jmp_buf back;
volatile std::sig_atomic_t may_jump;

// JUMPS: a timer's handler leaves the middle of an event by siglongjmp.
int jump_from_handler(const Arguments& arguments) {
  Ledger mine(arguments[0]);
  handle(SIGALRM, [](int) {
    if (may_jump) siglongjmp(back, 1);
  });
  volatile long left = number(arguments, 1, 50);
  if (sigsetjmp(back, 1) != 0) left = left - 1;
  while (left > 0) {
    may_jump = 1;
    ualarm(300, 0);
    for (int i = 0; i < 2000; ++i) mine.emit(0);
    may_jump = 0;
    left = left - 1;
  }
  std::printf("out\n");
  return 0;
}

constexpr Scenario kScenarios[] = {
    {"run", run}, {"until_killed", until_killed}, {"end_by", end_by}, {"jump_from_handler", jump_from_handler}};

}  // namespace

Scenarios endings() { return {kScenarios, std::size(kScenarios)}; }

}  // namespace fault
