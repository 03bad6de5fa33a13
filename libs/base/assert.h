#pragma once
// LLMPROF_ASSERT: a bug if false. On in dev and sanitizer builds; never used on user input.

#include <cstdio>
#include <cstdlib>

#ifdef LLMPROF_ASSERTS
#define LLMPROF_ASSERT(condition)                                                        \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "llmprof: bug: %s, %s:%d\n", #condition, __FILE__, __LINE__); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
#else
#define LLMPROF_ASSERT(condition) ((void)sizeof(condition))
#endif
