#pragma once
// Libraries reached by dlopen/dlsym: header types give the signatures, one table gives the names.
//   struct NvmlApi { decltype(&::nvmlInit_v2) init = nullptr; };
//   constexpr Binding<NvmlApi> kSymbols[] = {bind<&NvmlApi::init>("nvmlInit_v2")};
//   Result<NvmlApi> api = load_api<NvmlApi>({"libnvidia-ml.so.1"}, kSymbols);
// Or both at once, from a list of calls (LLMPROF_API below).
// The library stays loaded for the life of the process.

#include <dlfcn.h>

#include <initializer_list>
#include <span>
#include <string>

#include "base/result.h"

namespace llmprof::base {

enum class Need : std::uint8_t { kRequired, kOptional };

template <class Api>
struct Binding {
  const char* symbol;
  Need need;
  void (*store)(Api&, void*);
};

template <auto Member, class Api>
constexpr void store_symbol(Api& api, void* address) {
  api.*Member = reinterpret_cast<std::remove_reference_t<decltype(api.*Member)>>(address);
}

template <class T>
struct MemberOwner;
template <class Api, class Field>
struct MemberOwner<Field Api::*> {
  using type = Api;
};

template <auto Member>
constexpr auto bind(const char* symbol, Need need = Need::kRequired) {
  using Api = typename MemberOwner<decltype(Member)>::type;
  return Binding<Api>{symbol, need, &store_symbol<Member, Api>};
}

template <class Api>
Result<Api> load_api(std::span<const std::string> names, std::span<const Binding<Api>> symbols) {
  void* handle = nullptr;
  for (const std::string& name : names) {  // a copy already mapped first
    if (handle == nullptr) handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD);
  }
  std::string reason;
  for (const std::string& name : names) {
    if (handle == nullptr) {
      handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle == nullptr) {
        const char* text = ::dlerror();
        reason = text != nullptr ? text : name;
      }
    }
  }
  if (handle == nullptr) return Error{ErrorCode::kNotFound, "cannot load " + reason, ""};
  Api api{};
  for (const Binding<Api>& binding : symbols) {
    void* address = ::dlsym(handle, binding.symbol);
    if (address == nullptr && binding.need == Need::kRequired) {
      return Error{ErrorCode::kUnsupported, names.front() + " has no " + binding.symbol, ""};
    }
    binding.store(api, address);
  }
  return api;
}

}  // namespace llmprof::base

// A struct with a pointer for every call, and symbols(), the table that load_api wants. `calls` is a macro with the
// list:
//   #define NVML_CALLS(X) X(init, nvmlInit_v2) X(energy, nvmlDeviceGetTotalEnergyConsumption, base::Need::kOptional)
//   LLMPROF_API(NvmlApi, NVML_CALLS)
#define LLMPROF_API_FIELD(name, function, ...) decltype(&::function) name = nullptr;
#define LLMPROF_API_BINDING(name, function, ...) \
  ::llmprof::base::bind<&Self::name>(#function __VA_OPT__(, ) __VA_ARGS__),
#define LLMPROF_API(Api, calls)                                                                \
  struct Api {                                                                                 \
    calls(LLMPROF_API_FIELD) static std::span<const ::llmprof::base::Binding<Api>> symbols() { \
      using Self = Api;                                                                        \
      static constexpr ::llmprof::base::Binding<Api> kTable[] = {calls(LLMPROF_API_BINDING)};  \
      return kTable;                                                                           \
    }                                                                                          \
  };
