#pragma once
// Files of tests/imports, for tests.

#include <gtest/gtest.h>

#include <string>

#include "importers/importer.h"
#include "importers/input.h"
#include "importers/testing_sink.h"

namespace llmprof::importers {

inline std::string import_file(const std::string& name) { return LLMPROF_SOURCE_DIR "/tests/imports/" + name; }

// The plain content of a file of tests/imports.
inline std::string import_text(const std::string& name) {
  Result<Input> input = Input::open(import_file(name));
  if (!input) return {};
  Result<std::string> text = input->read_all(64 << 20);
  return text ? *text : std::string();
}

// What an importer makes of a text.
struct Imports {
  MemorySink sink;
  Result<void> result;

  Imports(std::string_view format, std::string text) {
    Input input = Input::of_text("x", std::move(text));
    result = find_importer(format)->parse(input, sink);
    sink.flush();
  }
  std::string error() const { return result ? "" : result.error().message; }
  std::string name(trace::Name id) const { return std::string(sink.text(id)); }
};

}  // namespace llmprof::importers
