#include "record/injection.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/file.h"
#include "record/window_options.h"

extern char** environ;

namespace llmprof::record {
namespace {

constexpr std::string_view kInjectLibrary = "libllmprof_inject.so";
constexpr std::string_view kBlasLibrary = "libllmprof_blas.so";

class Environment {
 public:
  explicit Environment(std::vector<std::string> lines) : lines_(std::move(lines)) {}

  std::string* find(std::string_view name) {
    const auto line = std::find_if(lines_.begin(), lines_.end(), [&](const std::string& text) {
      return text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=';
    });
    return line == lines_.end() ? nullptr : &*line;
  }
  bool is_set(std::string_view name) {
    const std::string* line = find(name);
    return line != nullptr && line->size() > name.size() + 1;
  }
  void set(std::string_view name, std::string_view value) {
    const std::string text = fmt::format("{}={}", name, value);
    if (std::string* line = find(name)) {
      *line = text;
    } else {
      lines_.push_back(text);
    }
  }
  void remove(std::string_view name) {
    std::erase_if(lines_, [&](const std::string& line) {
      return line.size() > name.size() && line.starts_with(name) && line[name.size()] == '=';
    });
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

// Ours goes last: a preload of the user (a memory allocator, a sanitizer) often must come first.
void append_preload(Environment& environment, const std::string& library, std::vector<std::string>& kept) {
  if (!environment.is_set("LD_PRELOAD")) return environment.set("LD_PRELOAD", library);
  std::string& line = *environment.find("LD_PRELOAD");
  kept.push_back(line);
  line += ":" + library;
}

void set_unless_set(Environment& environment, std::string_view name, const std::string& value,
                    std::vector<std::string>& kept) {
  if (environment.is_set(name)) {
    kept.push_back(*environment.find(name));
  } else {
    environment.set(name, value);
  }
}

}  // namespace

std::string library_folder() {
  const std::string override_folder = base::env_or("LLMPROF_LIBDIR", "");
  std::error_code ignored;
  if (!override_folder.empty()) return std::filesystem::absolute(override_folder, ignored).string();
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return (program.parent_path().parent_path() / "lib" / "llmprof").string();
}

Result<void> check_libraries(const InjectionOptions& options) {
  for (const std::string_view library : {kInjectLibrary, kBlasLibrary}) {
    if (library == kBlasLibrary && !options.blas) continue;
    const std::string path = fmt::format("{}/{}", options.library_folder, library);
    if (!base::is_file(path)) {
      return Error{ErrorCode::kNotFound, path + " is missing",
                   "reinstall llmprof, or set LLMPROF_LIBDIR to its folder"};
    }
  }
  // LD_PRELOAD separates its entries by colons and blanks and knows no quoting.
  if (options.blas && options.library_folder.find_first_of(": \t\n") != std::string::npos) {
    return Error{ErrorCode::kUnsupported,
                 options.library_folder + ": a library folder with blanks or colons cannot be preloaded",
                 "move llmprof to another folder, or use --no-blas"};
  }
  return {};
}

Injection child_environment(const std::vector<std::string>& environment, const InjectionOptions& options) {
  Injection injection;
  Environment child(environment);
  const std::string inject = fmt::format("{}/{}", options.library_folder, kInjectLibrary);
  if (options.blas) append_preload(child, fmt::format("{}/{}", options.library_folder, kBlasLibrary), injection.kept);
  if (options.nvtx) set_unless_set(child, "NVTX_INJECTION64_PATH", inject, injection.kept);
  set_unless_set(child, "CUDA_INJECTION64_PATH", inject, injection.kept);
  child.set(kCaptureVariable, options.capture_folder);
  child.set("LLMPROF_MAX_BYTES", std::to_string(options.max_bytes));
  for (const std::string& name : window_variable_names()) child.remove(name);
  for (const auto& [name, value] : options.window) child.set(name, value);
  injection.environment = child.take();
  return injection;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) lines.emplace_back(*line);
  return lines;
}

}  // namespace llmprof::record
