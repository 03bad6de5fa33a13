int through_library(int (*call)(int), int value);

__attribute__((noinline)) int through_library(int (*call)(int), int value) { return call(value + 1) + 7; }
