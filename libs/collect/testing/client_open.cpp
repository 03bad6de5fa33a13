// A program under test that opens files in every way that is hooked, checks that each call does what it always does,
// and makes two products with OpenBLAS. Run in a folder of its own.

#include <cblas.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace {

void product() {
  const float a = 2, b = 3;
  float c = 0;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, &a, 1, &b, 1, 0, &c, 1);
}

bool makes(const char* path, int flags, unsigned mode) {  // with this mode
  struct stat status {};
  const int descriptor = open(path, flags, mode);
  const bool good = descriptor >= 0 && fstat(descriptor, &status) == 0 && (status.st_mode & 0777) == mode;
  close(descriptor);
  return good;
}

bool reads(const std::string& path) {
  errno = 77;
  const int descriptor = open64(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool good = descriptor >= 0 && errno == 77 && (fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0;
  close(descriptor);
  return good;
}

bool reads_stream(const char* path) {
  std::FILE* file = std::fopen(path, "r");
  const bool good = file != nullptr && std::fgetc(file) == EOF;
  if (file != nullptr) std::fclose(file);
  return good;
}

}  // namespace

int main() {
  umask(0);
  bool good = makes("config.json", O_CREAT | O_WRONLY, 0640) && makes("x.gguf", O_CREAT | O_RDWR, 0600) &&
              makes("notes.txt", O_CREAT | O_WRONLY, 0644) && makes(".", O_TMPFILE | O_RDWR, 0604);
  mkdir("later", 0700);
  good = good && makes("later/config.json", O_CREAT | O_WRONLY, 0600);
  for (int i = 0; i < 40; ++i) {
    const std::string shard = "model-" + std::to_string(i) + ".safetensors";
    good = good && makes(shard.c_str(), O_CREAT | O_WRONLY, 0600) && reads(shard);
  }
  for (int i = 0; i < 100; ++i) good = good && reads("config.json") && reads("notes.txt");
  errno = 0;
  good = good && open("none/config.json", O_RDONLY) == -1 && errno == ENOENT && std::fopen("none.gguf", "r") == nullptr;
  good = good && open((std::string(5000, 'x') + "/config.json").c_str(), O_RDONLY) == -1 && errno == ENAMETOOLONG;
  good = good && open(nullptr, O_RDONLY) == -1 && errno == EFAULT;
  product();
  good = good && reads_stream("x.gguf") && reads("later/config.json");
  product();
  std::puts(good ? "right" : "wrong");
  return good ? 0 : 1;
}
