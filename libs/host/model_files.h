#pragma once
// Files of a model that a process was told of, has mapped or holds open, seen from outside: config.json, *.safetensors,
// *.gguf. A file that is read and closed again at once is not seen; most loaders map the weights, or are told a path.

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace llmprof::host {

struct ModelFile {
  std::string path;  // absolute
  std::string how;   // "named on the command line of process 12", "mapped by process 12", "open in process 12"
};

class ModelFiles {
 public:
  // Words of a command line, joined by '\0': files, folders with a config.json, and names such as "org/model" that the
  // Hugging Face cache of the process holds.
  void look_at_arguments(pid_t pid, std::string_view arguments);
  // What it has mapped and open now.
  void look_at_files(pid_t pid);

  const std::vector<ModelFile>& found() const { return found_; }  // each once, in the order they were seen

 private:
  void add(std::string path, std::string_view how, pid_t pid);
  void add_cached(pid_t pid, std::string_view name);

  std::vector<ModelFile> found_;
};

// By its name alone: config.json, *.safetensors, *.safetensors.index.json, *.gguf.
bool is_model_file(std::string_view path);
// The paths in the text of /proc/PID/maps that are such files.
std::vector<std::string> mapped_model_files(std::string_view maps);

}  // namespace llmprof::host
