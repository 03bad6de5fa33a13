#include "hw/cupti_paths.h"

#include "hw/doctor.h"

namespace llmprof::hw {
namespace {

void add_packages(const std::string& library_folder, std::vector<std::string>& paths) {
  for (const std::string& python : SystemFiles(library_folder).list("")) {
    if (!python.starts_with("python")) continue;
    for (const char* packages : {"/site-packages/nvidia/", "/dist-packages/nvidia/"}) {
      const std::string folder = library_folder + "/" + python + packages;
      paths.push_back(folder + "cu13/lib/libcupti.so.13");
      paths.push_back(folder + "cuda_cupti/lib/libcupti.so.12");
    }
  }
}

}  // namespace

// Beside the loader's: the toolkit's folders and the Python package's.
std::vector<std::string> cupti_paths(const SystemFiles& files) {
  if (const std::string wanted = variable(files, "LLMPROF_CUPTI"); !wanted.empty()) return {wanted};
  std::vector<std::string> paths{"libcupti.so.13", "libcupti.so.12"};
  std::vector<std::string> roots{variable(files, "CUDA_HOME"), variable(files, "CUDA_PATH"),
                                 files.path("usr/local/cuda")};
  for (const std::string& name : files.list("usr/local")) {
    if (name.starts_with("cuda-")) roots.push_back(files.path("usr/local/" + name));
  }
  for (const std::string& root : roots) {
    if (root.empty()) continue;
    for (const char* folder : {"/extras/CUPTI/lib64/", "/lib64/", "/lib/"}) {
      for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) paths.push_back(root + folder + name);
    }
  }
  std::vector<std::string> prefixes{variable(files, "VIRTUAL_ENV"), variable(files, "CONDA_PREFIX"),
                                    files.path("usr/local"), files.path("opt/conda")};
  for (const std::string& prefix : prefixes) {
    if (!prefix.empty()) add_packages(prefix + "/lib", paths);
  }
  return paths;
}

}  // namespace llmprof::hw
