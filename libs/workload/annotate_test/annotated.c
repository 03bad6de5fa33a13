/* The C half of the annotated test program. */
#include "annotated.h"

#include "llmprof/annotate.h"

void annotate_in_c(void) {
  const llmprof_name name = llmprof_register("layers.0.mlp");
  llmprof_model("{\"model_type\": \"llama\"}");
  llmprof_stage_push("prefill", 0, 0, 0);
  llmprof_step_push("prefill", 2, 128, 128);
  llmprof_module_push("layers.0");
  llmprof_module_push_registered(name);
  llmprof_pop();
  llmprof_pop();
  llmprof_pop();
  llmprof_pop();
  llmprof_pop(); /* one too many: never reaches the tool */
}
