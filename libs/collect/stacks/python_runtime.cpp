#include "collect/stacks/python_runtime.h"

#include <string.h>

#include "collect/images.h"
#include "collect/stacks/own_memory.h"

namespace llmprof::collect {
namespace {

template <class F>
void set_function(const Image& image, const char* name, F* function) {
  const ElfW(Sym)* symbol = find_function(image, name);
  if (symbol != nullptr) *function = reinterpret_cast<F>(image.base + symbol->st_value);
}

std::uintptr_t address_of(const Image& image, const char* name) {
  const ElfW(Sym)* symbol = find_variable(image, name);
  return symbol != nullptr ? image.base + symbol->st_value : 0;
}

void look_for_python(void* context, ImageList list) {
  auto* runtime = static_cast<PythonRuntime*>(context);
  for (std::size_t i = 0; i < list.count && runtime->this_thread == nullptr; ++i) {
    const Image& image = list.images[i];
    set_function(image, "PyGILState_GetThisThreadState", &runtime->this_thread);
    if (runtime->this_thread == nullptr) continue;
    runtime->code = {image.low, image.high};
    set_function(image, "PyCode_Addr2Line", &runtime->line_of);
    runtime->state = address_of(image, "_PyRuntime");
    runtime->code_type = address_of(image, "PyCode_Type");
    runtime->text_type = address_of(image, "PyUnicode_Type");
    const std::uintptr_t version = address_of(image, "Py_Version");  // since 3.11
    std::uint32_t number = 0;
    if (version != 0 && read_own_memory(version, &number, sizeof(number))) runtime->version = number;
  }
}

bool read_offsets(PythonRuntime* runtime) {
  std::uint64_t words[wire::kPythonOffsetWords];
  return read_own_memory(runtime->state, words, sizeof(words)) && memcmp(words, wire::kPythonOffsetCookie, 8) == 0 &&
         words[1] >> 16 == runtime->version >> 16 && wire::layout_from_offsets(words, &runtime->layout);
}

}  // namespace

PythonFound find_python(PythonRuntime* runtime, const char** why) {
  *runtime = {};
  with_images(look_for_python, runtime);
  if (runtime->this_thread == nullptr) return PythonFound::kNo;
  if (runtime->line_of == nullptr || runtime->state == 0 || runtime->code_type == 0 || runtime->text_type == 0) {
    *why = "this Python does not say where its state is";
  } else if (const wire::PythonLayout* known = wire::python_layout(runtime->version)) {
    runtime->layout = *known;
    return PythonFound::kReadable;
  } else if (runtime->version == 0) {
    *why = "this Python is older than 3.11";
  } else if (read_offsets(runtime)) {
    return PythonFound::kReadable;
  } else {
    *why = "frames of this version or build of Python are not known (3.11 to 3.14 with a GIL are)";
  }
  return PythonFound::kUnreadable;
}

}  // namespace llmprof::collect
