// The same loop with the annotations compiled out.

#define LLMPROF_NO_ANNOTATIONS
#include "llmprof/annotate.h"

void annotate_compiled_out(long count) {
  for (long i = 0; i < count; ++i) {
    llmprof_module_push("layers.0.mlp.up_proj");
    asm volatile("" ::: "memory");
    llmprof_pop();
    asm volatile("" ::: "memory");
  }
}
