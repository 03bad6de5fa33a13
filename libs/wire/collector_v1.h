#pragma once
// How libllmprof_blas.so hands over to libllmprof_inject.so: one exported function that returns one table. The two are
// shipped together, but a process may hold an older one of either, so the table says its size and version.

#include "wire/format.h"

extern "C" {

struct llmprof_collector_table {
  std::uint32_t size;     // of this structure as the collector was built
  std::uint32_t version;  // 1

  std::uint64_t (*now)();  // nanoseconds on the recording's clock
  llmprof::wire::StringId (*intern)(const char* text);

  // Around a BLAS call. begin sets begin_ns and makes the record the thread's current call; end sets end_ns and records
  // it. The record lives on the caller's stack.
  void (*gemm_begin)(llmprof::wire::GemmRecord* record);
  void (*gemm_end)(llmprof::wire::GemmRecord* record);
  const llmprof::wire::GemmRecord* (*current_gemm)();  // of this thread; null outside a call

  void (*note_library)(const char* path, int hooked);  // as LibraryRecord has it
  void (*count_loss)(std::uint16_t kind, std::uint64_t count);
  void (*start)();  // opens the log now; normally the first event does
  void (*end)();    // orderly end of the recording, for a process that is exiting

  // Since size 96: what the GPU's BLAS libraries need.
  llmprof::wire::DefinitionId (*define)(const llmprof::wire::Record* record);  // interns a definition
  void (*record)(const llmprof::wire::Record* record);                         // an event of this thread

  // Since size 120: ranges for Python (python/llmprof/_nvtx.py), as functions that the interpreter calls by itself. A
  // call through ctypes takes six times as long. They have the shape of a PyCFunction without arguments; what they
  // need of Python is handed over once, so nothing here depends on its headers or version.
  void (*python_begin)(void* (*pointer_of)(void* number), void (*keep)(void* object), void* none);
  void* (*python_push)(void* number, void* unused);  // the address of a {domain, nvtxEventAttributes} that lives on
  void* (*python_pop)(void* number, void* unused);   // a domain

  // Since size 136: before a process ends without its exit handlers. Both wait for the writer, but not for long.
  void (*flush)();  // what was recorded so far is written; recording goes on
  void (*leave)();  // the process is about to call _exit(): as end(), or as flush() where CUDA's records are missing

  // Since size 152: marks for Python, as its ranges.
  void* (*python_mark)(void* number, void* unused);  // the address of a {domain, nvtxEventAttributes}
};

// Null: this process is not recorded.
const llmprof_collector_table* llmprof_collector_v1();

}  // extern "C"
