/* A small NVTX tool for tests: prints every event of its clients, one line each, to standard output.
 * RECORDER_DELAY_MS: time it takes to start. RECORDER_REFUSE: it declines to attach. RECORDER_SLOTS=ranges: it wants
 * nothing but push and pop. */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

#include "llmprof/annotate.h"

struct callbacks_table { /* NvtxExportTableCallbacks */
  size_t size;
  int (*module_table)(int, llmprof_detail_fn***, unsigned int*);
};

static void print(const char* what, const void* domain, const char* detail) {
  char line[512];
  const int length =
      snprintf(line, sizeof(line), "%d %s %s%s\n", (int)gettid(), what, domain ? "" : "(default) ", detail);
  if (write(1, line, (size_t)length) != length) _exit(3); /* one write: lines of threads do not mix */
}

static const char* describe(const llmprof_detail_event* event, char* out, size_t size) {
  snprintf(out, size, "v%d/%d category=%u payload=%d:%llx message=%d:%s", event->version, event->size, event->category,
           event->payload_type, (unsigned long long)event->payload, event->message_type, (const char*)event->message);
  return out;
}

static void* create_domain(const char* name) {
  static int handle;
  print("domain", &handle, name);
  return &handle;
}

static void name_category(void* domain, uint32_t category, const char* name) {
  char out[64];
  snprintf(out, sizeof(out), "%u=%s", category, name);
  print("category", domain, out);
}

static const void* register_string(void* domain, const char* text) {
  print("register", domain, text);
  return text;
}

static int push(void* domain, const llmprof_detail_event* event) {
  char out[400];
  print("push", domain, describe(event, out, sizeof(out)));
  return 0;
}

static int pop(void* domain) {
  print("pop", domain, "");
  return 0;
}

static void mark(void* domain, const llmprof_detail_event* event) {
  char out[400];
  print("mark", domain, describe(event, out, sizeof(out)));
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t)) {
  const struct callbacks_table* const callbacks = export_table(1);
  const char* const delay = getenv("RECORDER_DELAY_MS");
  llmprof_detail_fn** core2 = 0;
  unsigned int size = 0;
  if (getenv("RECORDER_REFUSE")) return 0;
  if (delay) usleep((useconds_t)atoi(delay) * 1000);
  if (!callbacks->module_table(5, &core2, &size) || size < 16) return 0;
  *core2[4] = (llmprof_detail_fn)push;
  *core2[5] = (llmprof_detail_fn)pop;
  if (getenv("RECORDER_SLOTS")) return 1;
  *core2[1] = (llmprof_detail_fn)mark;
  *core2[8] = (llmprof_detail_fn)name_category;
  *core2[10] = (llmprof_detail_fn)register_string;
  *core2[12] = (llmprof_detail_fn)create_domain;
  return 1;
}
