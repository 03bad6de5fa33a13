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
constexpr std::string_view kModulesHook = "python/hook";  // holds a sitecustomize.py

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

// In front, because Python takes the first sitecustomize it finds; ours then looks for the next. An empty entry would
// mean the current folder.
void prepend_python_path(Environment& environment, const std::string& folder) {
  if (!environment.is_set("PYTHONPATH")) return environment.set("PYTHONPATH", folder);
  const std::string users = environment.find("PYTHONPATH")->substr(sizeof("PYTHONPATH"));
  environment.set("PYTHONPATH", fmt::format("{}:{}", folder, users));
}

void set_if_given(Environment& environment, std::string_view name, const std::optional<std::uint64_t>& value) {
  if (value) environment.set(name, std::to_string(*value));
}

Result<void> check_modules_hook(const std::string& library_folder) {
  const std::string hook = fmt::format("{}/{}", library_folder, kModulesHook);
  if (!base::is_file(hook + "/sitecustomize.py")) {
    return Error{ErrorCode::kNotFound, hook + "/sitecustomize.py is missing",
                 "reinstall llmprof, or set LLMPROF_LIBDIR to its folder"};
  }
  if (library_folder.find(':') == std::string::npos) return {};
  return Error{ErrorCode::kUnsupported, library_folder + ": a folder with a colon cannot stand in PYTHONPATH",
               "move llmprof to another folder, or leave out --modules"};
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
  return options.modules ? check_modules_hook(options.library_folder) : Result<void>{};
}

Result<std::uint64_t> parse_stacks(std::string_view text) {
  std::uint64_t stacks = 0;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    if (word != "python" && word != "native") {
      return Error{ErrorCode::kUsage, fmt::format("--stacks {}: not python, native or python,native", text), ""};
    }
    stacks |= word == "python" ? 1 : 2;
    if (comma == std::string_view::npos) return stacks;
    rest.remove_prefix(comma + 1);
  }
}

std::optional<std::string> why_no_modules(const std::vector<std::string>& command) {
  if (command.empty()) return std::nullopt;
  const std::string_view program = std::string_view(command.front()).substr(command.front().rfind('/') + 1);
  if (!program.starts_with("python")) return std::nullopt;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string_view word = command[i];
    if (word.size() < 2 || word[0] != '-' || word[1] == '-') return std::nullopt;
    for (const char letter : word.substr(1)) {
      if (letter == 'I' || letter == 'S' || letter == 'E') {
        return fmt::format("{} -{}: Python then does not load what --modules needs", program, letter);
      }
      if (letter == 'c' || letter == 'm') return std::nullopt;  // what follows is the program's
      if (letter == 'W' || letter == 'X') {                     // has a value: the rest of the word, or the next one
        if (word.back() == letter) ++i;
        break;
      }
    }
  }
  return std::nullopt;
}

Injection child_environment(const std::vector<std::string>& environment, const InjectionOptions& options) {
  Injection injection;
  Environment child(environment);
  const std::string inject = fmt::format("{}/{}", options.library_folder, kInjectLibrary);
  if (options.blas) append_preload(child, fmt::format("{}/{}", options.library_folder, kBlasLibrary), injection.kept);
  if (options.nvtx) set_unless_set(child, "NVTX_INJECTION64_PATH", inject, injection.kept);
  const bool gpu = !options.collector.gpu || *options.collector.gpu != 0;
  if (gpu) set_unless_set(child, "CUDA_INJECTION64_PATH", inject, injection.kept);
  child.set(kCaptureVariable, options.capture_folder);
  child.set("LLMPROF_MAX_BYTES", std::to_string(options.max_bytes));
  for (const std::string& name : window_variable_names()) child.remove(name);
  for (const auto& [name, value] : options.window) child.set(name, value);
  set_if_given(child, "LLMPROF_GPU", options.collector.gpu);
  set_if_given(child, "LLMPROF_GRAPHS", options.collector.graphs);
  set_if_given(child, "LLMPROF_KERNELS", options.collector.kernels);
  set_if_given(child, "LLMPROF_STACKS", options.collector.stacks);
  for (const char* name : {"LLMPROF_REST_FROM_NS", "LLMPROF_REST_EVERY_MS", "LLMPROF_REST_MS"}) child.remove(name);
  if (options.rests.any()) {
    child.set("LLMPROF_REST_FROM_NS", std::to_string(options.rests.from_ns));
    child.set("LLMPROF_REST_EVERY_MS", std::to_string(options.rests.every_ns / 1'000'000));
    child.set("LLMPROF_REST_MS", std::to_string(options.rests.lasts_ns / 1'000'000));
  }
  child.remove("LLMPROF_COUNTERS");  // of an outer recording
  if (options.counters) child.set("LLMPROF_COUNTERS", "1");
  if (options.modules) prepend_python_path(child, fmt::format("{}/{}", options.library_folder, kModulesHook));
  injection.environment = child.take();
  return injection;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) lines.emplace_back(*line);
  return lines;
}

}  // namespace llmprof::record
