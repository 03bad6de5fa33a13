/* Says which stage, step and module of a model is running, to llmprof or to any other NVTX tool.
 *
 * Self-contained: C11 or C++11, no CUDA headers, nothing to link but libc (glibc before 2.34: -ldl). At the first
 * annotation it looks for a listening tool as NVTX v3 does, through NVTX_INJECTION64_PATH. Nobody listening: a load
 * and a branch per call. LLMPROF_NO_ANNOTATIONS compiles everything out; so do systems other than Linux.
 *
 * Grammar: NVTX domain "llmprof"; categories 1 stage, 2 step, 3 module, 4 model, 5 note, 8 request; a stage or step carries
 * batch | tokens << 16 | context << 40 in its unsigned 64-bit payload. docs/manual/annotate.md is the manual.
 *
 * Every function may be called from any thread. A push belongs to its thread and is popped there, innermost first. */
#ifndef LLMPROF_ANNOTATE_H
#define LLMPROF_ANNOTATE_H

#include <stdint.h>

#if defined(LLMPROF_NO_ANNOTATIONS) || !defined(__linux__)
#define LLMPROF_DETAIL_OFF 1
#else
#define LLMPROF_DETAIL_OFF 0
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
  LLMPROF_STAGE = 1,
  LLMPROF_STEP = 2,
  LLMPROF_MODULE = 3,
  LLMPROF_MODEL = 4,
  LLMPROF_NOTE = 5,
  LLMPROF_PARALLEL = 7,
  LLMPROF_REQUEST = 8
}; /* NVTX categories */

/* What becomes of a request: `tokens` and `context` of llmprof_request() mean what stands behind each. */
enum {
  LLMPROF_REQUEST_QUEUED = 1,    /* the engine took it: tokens of its prompt, most output tokens */
  LLMPROF_REQUEST_SCHEDULED = 2, /* part of its first step, or of the first after a preemption: tokens found in the cache */
  LLMPROF_REQUEST_MEMBER = 3,    /* part of the open step: new tokens, length afterwards */
  LLMPROF_REQUEST_PREEMPTED = 4, /* lost its KV cache */
  LLMPROF_REQUEST_OUTPUT = 5,    /* output tokens are ready: how many */
  LLMPROF_REQUEST_FINISHED = 6,  /* status (below), output tokens in all */
  LLMPROF_ENGINE_PADDED = 7,     /* no request: rows that the open step's products have, padding included */
  LLMPROF_ENGINE_BLOCKS = 8      /* no request: blocks of the KV cache in use, and all */
};
enum { LLMPROF_FINISHED = 0, LLMPROF_LENGTH = 1, LLMPROF_ABORTED = 2, LLMPROF_FAILED = 3 };

/* A name prepared once for hot paths. `text` is kept, not copied: it must live as long as the name is used. */
typedef struct llmprof_name {
  const char* text;
  const void* handle; /* the tool's, or null */
} llmprof_name;

/* The three integers in one: batch in bits 0-15, tokens in 16-39, context in 40-63. Too large a value becomes the
 * largest that fits. 0 in a field: unknown. */
static inline uint64_t llmprof_payload(uint32_t batch, uint32_t tokens, uint32_t context) {
  const uint64_t batch_bits = batch < 0xFFFFu ? batch : 0xFFFFu;
  const uint64_t token_bits = tokens < 0xFFFFFFu ? tokens : 0xFFFFFFu;
  const uint64_t context_bits = context < 0xFFFFFFu ? context : 0xFFFFFFu;
  return batch_bits | token_bits << 16 | context_bits << 40;
}

/* Event in bits 0-7, tokens in 8-31, context in 32-59. */
static inline uint64_t llmprof_request_payload(uint32_t event, uint32_t tokens, uint32_t context) {
  const uint64_t token_bits = tokens < 0xFFFFFFu ? tokens : 0xFFFFFFu;
  const uint64_t context_bits = context < 0xFFFFFFFu ? context : 0xFFFFFFFu;
  return (event & 0xFFu) | token_bits << 8 | context_bits << 32;
}

#if !LLMPROF_DETAIL_OFF

/* ---- how it works: the NVTX v3 injection handshake ---------------------------------------------------------- */

/* One copy in each program or shared object, shared by its C and C++ files. */
#define LLMPROF_DETAIL_ONCE __attribute__((weak, visibility("hidden")))
#ifdef __cplusplus
#define LLMPROF_DETAIL_CAST(type, value) reinterpret_cast<type>(value)
#else
#define LLMPROF_DETAIL_CAST(type, value) ((type)(value))
#endif

enum { LLMPROF_DETAIL_FRESH = 0, LLMPROF_DETAIL_STARTING = 1, LLMPROF_DETAIL_NOBODY = 2, LLMPROF_DETAIL_LISTENING = 3 };
enum { LLMPROF_DETAIL_SLOTS = 16 }; /* callback ids 0-15 of the NVTX modules CORE and CORE2; 0 is not a callback */

typedef void (*llmprof_detail_fn)(void);

typedef struct llmprof_detail_event { /* nvtxEventAttributes_v2 */
  uint16_t version, size;
  uint32_t category;
  int32_t color_type; /* 0: none */
  uint32_t color;
  int32_t payload_type; /* 0: none, 1: unsigned 64 bit */
  int32_t reserved;
  uint64_t payload;
  int32_t message_type; /* 1: bytes, 3: registered string */
  const void* message;
} llmprof_detail_event;

typedef struct llmprof_detail_state {
  int phase;
  void* domain;
  llmprof_detail_fn core2[LLMPROF_DETAIL_SLOTS]; /* what the tool wants called; null: not interested */
  llmprof_detail_fn* core2_table[LLMPROF_DETAIL_SLOTS + 1];
  llmprof_detail_fn ignored; /* takes callbacks that this header never calls */
  llmprof_detail_fn* ignored_table[LLMPROF_DETAIL_SLOTS + 1];
} llmprof_detail_state;

/* Annotations made by a thread while another one is still loading the tool may be skipped; their pops then are too. */
typedef struct llmprof_detail_thread {
  uint32_t open, skipped; /* skipped ranges always enclose the open ones */
  int busy;               /* this thread is loading the tool, or has waited for it once already */
} llmprof_detail_thread;

LLMPROF_DETAIL_ONCE llmprof_detail_state llmprof_detail_global;
LLMPROF_DETAIL_ONCE __thread llmprof_detail_thread llmprof_detail_local;

/* The tool asks for the callbacks of a module, and writes its functions through the pointers of the table. */
LLMPROF_DETAIL_ONCE int llmprof_detail_module_table(int module, llmprof_detail_fn*** table, unsigned int* size) {
  /* INVALID, CORE, CUDA, OPENCL, CUDART, CORE2, SYNC: their callback ids end before these */
  static const unsigned int sizes[] = {0, 16, 9, 15, 7, 16, 7};
  if (module < 1 || module > 6) return 0;
  if (size) *size = sizes[module];
  if (table) *table = module == 5 ? llmprof_detail_global.core2_table : llmprof_detail_global.ignored_table;
  return 1;
}

LLMPROF_DETAIL_ONCE void llmprof_detail_tool_version(uint32_t version) { (void)version; }

LLMPROF_DETAIL_ONCE const void* llmprof_detail_export_table(uint32_t id) {
  static const struct {
    size_t size;
    int (*module_table)(int, llmprof_detail_fn***, unsigned int*);
  } callbacks = {sizeof(callbacks), llmprof_detail_module_table};
  static const struct {
    size_t size;
    uint32_t version, reserved;
    void (*tool_version)(uint32_t);
  } version_info = {sizeof(version_info), 3, 0, llmprof_detail_tool_version};
  if (id == 1) return &callbacks;
  if (id == 3) return &version_info;
  return 0;
}

/* Loads the tool that the environment names, and lets it fill the callbacks. 1: it listens. */
LLMPROF_DETAIL_ONCE int llmprof_detail_attach(void) {
  llmprof_detail_state* const state = &llmprof_detail_global;
  /* A set-user-id program must not load what its caller's environment names. */
  const char* const path = getauxval(AT_SECURE) ? 0 : getenv("NVTX_INJECTION64_PATH");
  void* symbol = 0;
  int (*initialize)(const void* (*export_table)(uint32_t)) = 0;
  int i;
  if (path && *path) {
    void* const library = dlopen(path, RTLD_LAZY);
    if (library) symbol = dlsym(library, "InitializeInjectionNvtx2");
  } else {
    void* const program = dlopen(0, RTLD_LAZY);
    if (program) symbol = dlsym(program, "InitializeInjectionNvtx2Preinject");
  }
  if (!symbol) return 0;
  for (i = 1; i < LLMPROF_DETAIL_SLOTS; ++i) {
    state->core2_table[i] = &state->core2[i];
    state->ignored_table[i] = &state->ignored;
  }
  memcpy(&initialize, &symbol, sizeof(symbol)); /* ISO C has no cast from an object to a function */
  return initialize(llmprof_detail_export_table) != 0 && state->core2[4] && state->core2[5];
}

/* Creates the domain and names its categories. */
LLMPROF_DETAIL_ONCE void llmprof_detail_introduce(void) {
  static const char* const categories[] = {"", "stage", "step", "module", "model", "note", "pass", "parallel", "request"};
  llmprof_detail_state* const state = &llmprof_detail_global;
  uint32_t i;
  if (state->core2[12]) state->domain = LLMPROF_DETAIL_CAST(void* (*)(const char*), state->core2[12])("llmprof");
  if (!state->core2[8]) return;
  for (i = LLMPROF_STAGE; i <= LLMPROF_REQUEST; ++i) {
    LLMPROF_DETAIL_CAST(void (*)(void*, uint32_t, const char*), state->core2[8])(state->domain, i, categories[i]);
  }
}

/* 1: a tool listens. The first thread loads it. Others wait, but not for ever: one of them may hold the loader's lock
 * (it runs a constructor inside dlopen), and the first thread needs that lock. */
LLMPROF_DETAIL_ONCE int llmprof_detail_start(void) {
  llmprof_detail_state* const state = &llmprof_detail_global;
  llmprof_detail_thread* const self = &llmprof_detail_local;
  int phase = LLMPROF_DETAIL_FRESH;
  int waited_ms;
  if (__atomic_compare_exchange_n(&state->phase, &phase, LLMPROF_DETAIL_STARTING, 0, __ATOMIC_ACQUIRE,
                                  __ATOMIC_ACQUIRE)) {
    self->busy = 1; /* what the tool itself annotates while it starts is skipped */
    phase = llmprof_detail_attach() ? LLMPROF_DETAIL_LISTENING : LLMPROF_DETAIL_NOBODY;
    if (phase == LLMPROF_DETAIL_LISTENING) llmprof_detail_introduce();
    self->busy = 0;
    __atomic_store_n(&state->phase, phase, __ATOMIC_RELEASE);
  }
  for (waited_ms = 0; phase == LLMPROF_DETAIL_STARTING && !self->busy && waited_ms < 200; ++waited_ms) {
    poll(0, 0, 1);
    phase = __atomic_load_n(&state->phase, __ATOMIC_ACQUIRE);
  }
  if (phase == LLMPROF_DETAIL_STARTING) self->busy = 1;
  return phase == LLMPROF_DETAIL_LISTENING;
}

LLMPROF_DETAIL_ONCE void llmprof_detail_event_fill(llmprof_detail_event* event, uint32_t category, llmprof_name name,
                                                   uint64_t payload) {
  memset(event, 0, sizeof(*event));
  event->version = 3;
  event->size = sizeof(*event);
  event->category = category;
  event->payload_type = payload != 0;
  event->payload = payload;
  event->message_type = name.handle ? 3 : 1;
  event->message = name.handle ? name.handle : name.text;
}

LLMPROF_DETAIL_ONCE void llmprof_detail_push(uint32_t category, llmprof_name name, uint64_t payload) {
  llmprof_detail_event event;
  if (!llmprof_detail_start()) {
    ++llmprof_detail_local.skipped;
    return;
  }
  llmprof_detail_event_fill(&event, category, name, payload);
  ++llmprof_detail_local.open;
  LLMPROF_DETAIL_CAST(int (*)(void*, const llmprof_detail_event*), llmprof_detail_global.core2[4])
  (llmprof_detail_global.domain, &event);
}

LLMPROF_DETAIL_ONCE void llmprof_detail_pop(void) {
  llmprof_detail_thread* const self = &llmprof_detail_local;
  if (self->open) {
    --self->open;
    LLMPROF_DETAIL_CAST(int (*)(void*), llmprof_detail_global.core2[5])(llmprof_detail_global.domain);
  } else if (self->skipped) {
    --self->skipped;
  }
}

LLMPROF_DETAIL_ONCE void llmprof_detail_mark(uint32_t category, llmprof_name name, uint64_t payload) {
  llmprof_detail_event event;
  if (!llmprof_detail_start() || !llmprof_detail_global.core2[1]) return;
  llmprof_detail_event_fill(&event, category, name, payload);
  LLMPROF_DETAIL_CAST(void (*)(void*, const llmprof_detail_event*), llmprof_detail_global.core2[1])
  (llmprof_detail_global.domain, &event);
}

LLMPROF_DETAIL_ONCE void llmprof_detail_note(const char* subject, const char* text) {
  const size_t subject_bytes = strlen(subject), text_bytes = strlen(text);
  char* const both = LLMPROF_DETAIL_CAST(char*, malloc(subject_bytes + text_bytes + 3));
  if (!both) return;
  memcpy(both, subject, subject_bytes);
  memcpy(both + subject_bytes, ": ", 2);
  memcpy(both + subject_bytes + 2, text, text_bytes + 1);
  {
    const llmprof_name name = {both, 0};
    llmprof_detail_mark(LLMPROF_NOTE, name, 0);
  }
  free(both);
}

LLMPROF_DETAIL_ONCE const void* llmprof_detail_register(const char* text) {
  if (!llmprof_detail_start() || !llmprof_detail_global.core2[10]) return 0;
  return LLMPROF_DETAIL_CAST(void* (*)(void*, const char*), llmprof_detail_global.core2[10])(
      llmprof_detail_global.domain, text);
}

/* The whole cost when nobody listens. */
static inline int llmprof_detail_nobody(void) {
  const int phase = __atomic_load_n(&llmprof_detail_global.phase, __ATOMIC_ACQUIRE);
  return __builtin_expect(phase == LLMPROF_DETAIL_NOBODY, 1) != 0;
}

#define LLMPROF_DETAIL_WHEN_HEARD(call) \
  do {                                  \
    if (!llmprof_detail_nobody()) call; \
  } while (0)
#else
#define LLMPROF_DETAIL_WHEN_HEARD(call) ((void)0)
#endif

/* ---- what you call ------------------------------------------------------------------------------------------- */

/* 1 if a tool listens: to skip work that only prepares an annotation, such as building a name. */
static inline int llmprof_listening(void) {
#if LLMPROF_DETAIL_OFF
  return 0;
#else
  return !llmprof_detail_nobody() && llmprof_detail_start();
#endif
}

static inline llmprof_name llmprof_unregistered(const char* text) {
  llmprof_name name;
  name.text = text;
  name.handle = 0;
  return name;
}

static inline llmprof_name llmprof_register(const char* text) {
  llmprof_name name = llmprof_unregistered(text);
  LLMPROF_DETAIL_WHEN_HEARD(name.handle = llmprof_detail_register(text));
  return name;
}

/* A stage: prefill, decode, mixed, forward, backward, optimizer, load, warm-up or other. It holds steps; without steps
 * inside, it counts as one. batch: sequences; tokens: new tokens of each; context: length of each, these included. */
static inline void llmprof_stage_push(const char* name, uint32_t batch, uint32_t tokens, uint32_t context) {
  (void)name, (void)batch, (void)tokens, (void)context;
  LLMPROF_DETAIL_WHEN_HEARD(
      llmprof_detail_push(LLMPROF_STAGE, llmprof_unregistered(name), llmprof_payload(batch, tokens, context)));
}

/* A step: one pass over the model, sampling included. Its name is the stage it belongs to. */
static inline void llmprof_step_push(const char* name, uint32_t batch, uint32_t tokens, uint32_t context) {
  (void)name, (void)batch, (void)tokens, (void)context;
  LLMPROF_DETAIL_WHEN_HEARD(
      llmprof_detail_push(LLMPROF_STEP, llmprof_unregistered(name), llmprof_payload(batch, tokens, context)));
}

/* A part of the model: "layers.3.mlp.up_proj". Nested names are joined with "." unless the inner one already starts
 * with the outer path and ".". */
static inline void llmprof_module_push_registered(llmprof_name name) {
  (void)name;
  LLMPROF_DETAIL_WHEN_HEARD(llmprof_detail_push(LLMPROF_MODULE, name, 0));
}
static inline void llmprof_module_push(const char* name) { llmprof_module_push_registered(llmprof_unregistered(name)); }

/* Ends the innermost open range of this thread. */
static inline void llmprof_pop(void) { LLMPROF_DETAIL_WHEN_HEARD(llmprof_detail_pop()); }

/* Which model runs: the text of a Hugging Face config.json. Once, before the first step. */
static inline void llmprof_model(const char* config_json) {
  (void)config_json;
  LLMPROF_DETAIL_WHEN_HEARD(llmprof_detail_mark(LLMPROF_MODEL, llmprof_unregistered(config_json), 0));
}

/* Something worth knowing about the run, said once: it stands in the table `note`. */
static inline void llmprof_note(const char* subject, const char* text) {
  (void)subject, (void)text;
  LLMPROF_DETAIL_WHEN_HEARD(llmprof_detail_note(subject, text));
}

/* How the ranks of a job divide the model: "tp=2,pp=4,dp=2,ep=8" (tensor, pipeline, data, expert), in the order in
 * which ranks are counted. Once, by every rank or one of them. */
static inline void llmprof_parallel(const char* groups) {
  (void)groups;
  LLMPROF_DETAIL_WHEN_HEARD(llmprof_detail_mark(LLMPROF_PARALLEL, llmprof_unregistered(groups), 0));
}

/* A moment of a request, by its id (best the X-Request-Id, so that a client's view of it can be joined); "" where the
 * event is of the engine. */
static inline void llmprof_request(const char* id, uint32_t event, uint32_t tokens, uint32_t context) {
  (void)id, (void)event, (void)tokens, (void)context;
  LLMPROF_DETAIL_WHEN_HEARD(
      llmprof_detail_mark(LLMPROF_REQUEST, llmprof_unregistered(id), llmprof_request_payload(event, tokens, context)));
}

/* The request is part of the step that is open on this thread, with so many new tokens; context: its length afterwards.
 * Once per request and step, before or after the step's work. */
static inline void llmprof_step_member(const char* id, uint32_t tokens, uint32_t context) {
  llmprof_request(id, LLMPROF_REQUEST_MEMBER, tokens, context);
}

#ifdef __cplusplus
} /* extern "C" */

#if __cplusplus >= 201703L
#define LLMPROF_DETAIL_NODISCARD [[nodiscard]]
#else
#define LLMPROF_DETAIL_NODISCARD
#endif

/* The same as objects: the range lasts as long as the variable. Give it a name: `llmprof::Module m("mlp");`. */
namespace llmprof {

class Range {
 public:
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 protected:
  Range() = default;
  ~Range() { llmprof_pop(); }
};

class Stage : Range {
 public:
  LLMPROF_DETAIL_NODISCARD explicit Stage(const char* name, uint32_t batch = 0, uint32_t tokens = 0,
                                          uint32_t context = 0) {
    llmprof_stage_push(name, batch, tokens, context);
  }
};

class Step : Range {
 public:
  LLMPROF_DETAIL_NODISCARD explicit Step(const char* name, uint32_t batch = 0, uint32_t tokens = 0,
                                         uint32_t context = 0) {
    llmprof_step_push(name, batch, tokens, context);
  }
};

class Module : Range {
 public:
  LLMPROF_DETAIL_NODISCARD explicit Module(const char* name) { llmprof_module_push(name); }
  LLMPROF_DETAIL_NODISCARD explicit Module(llmprof_name name) { llmprof_module_push_registered(name); }
};

} /* namespace llmprof */
#endif /* __cplusplus */

#endif /* LLMPROF_ANNOTATE_H */
