// What libFuzzer calls, for every target. `fuzz_X --seeds FOLDER` writes the target's seeds and FOLDER.dict instead.

#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "fuzz.h"

namespace llmprof::fuzz {
namespace {

void write_bytes(const std::string& path, std::string_view bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) std::perror(path.c_str()), std::exit(1);
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
}

// A line of a dictionary: everything that is not a letter or digit as \xNN.
std::string dictionary_line(std::string_view word) {
  std::string line = "\"";
  for (const char c : word) {
    char code[8];
    std::snprintf(code, sizeof(code), isalnum(static_cast<unsigned char>(c)) != 0 ? "%c" : "\\x%02X",
                  static_cast<unsigned char>(c));
    line += code;
  }
  return line + "\"\n";
}

void write_seeds(const std::string& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : kTarget.seeds()) write_bytes(folder + "/seed-" + std::to_string(number++), seed);
  std::string words;
  for (const std::string& word : kTarget.dictionary()) words += dictionary_line(word);
  write_bytes(folder + ".dict", words);
}

// One folder in memory for the life of the process.
class Scratch {
 public:
  Scratch() {
    std::string pattern =
        std::filesystem::is_directory("/dev/shm") ? "/dev/shm/llmprof-fuzz-XXXXXX" : "/tmp/llmprof-fuzz-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::perror("fuzz: no folder for files"), std::exit(1);
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string in_folder(const std::string& name, std::string_view bytes) {
  static const Scratch scratch;
  write_bytes(scratch.path() + "/" + name, bytes);
  return scratch.path();
}

std::string in_file(std::string_view bytes) { return in_folder("input", bytes) + "/input"; }

}  // namespace llmprof::fuzz

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc != 3 || std::strcmp((*argv)[1], "--seeds") != 0) return 0;
  llmprof::fuzz::write_seeds((*argv)[2]);
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  llmprof::fuzz::kTarget.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
