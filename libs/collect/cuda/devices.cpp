#include "collect/cuda/devices.h"

#include <dlfcn.h>
#include <string.h>

#include "collect/cuda/facts.h"
#include "collect/names.h"

namespace llmprof::collect {
namespace {

struct Driver {
  int (*count)(int* count);
  int (*device)(int* device, int ordinal);
  int (*name)(char* name, int bytes, int device);
  int (*uuid)(unsigned char* uuid, int device);
  int (*memory)(std::size_t* bytes, int device);
  int (*attribute)(int* value, int attribute, int device);
};

constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76;
constexpr int kMaxDevices = 64;

template <class Function>
void load(void* handle, Function** function, const char* name, const char* older = nullptr) {
  *function = reinterpret_cast<Function*>(dlsym(handle, name));
  if (*function == nullptr && older != nullptr) *function = reinterpret_cast<Function*>(dlsym(handle, older));
}

bool find_driver(Driver* driver) {
  void* handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  load(handle, &driver->count, "cuDeviceGetCount");
  load(handle, &driver->device, "cuDeviceGet");
  load(handle, &driver->name, "cuDeviceGetName");
  load(handle, &driver->uuid, "cuDeviceGetUuid_v2", "cuDeviceGetUuid");
  load(handle, &driver->memory, "cuDeviceTotalMem_v2", "cuDeviceTotalMem");
  load(handle, &driver->attribute, "cuDeviceGetAttribute");
  return driver->count != nullptr && driver->device != nullptr;
}

std::uint64_t big_endian(const unsigned char* bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | bytes[i];
  return value;
}

std::uint32_t attribute(const Driver& driver, int which, int device) {
  int value = 0;
  if (driver.attribute == nullptr || driver.attribute(&value, which, device) != 0 || value < 0) return 0;
  return static_cast<std::uint32_t>(value);
}

void state_device(const Driver& driver, int ordinal) {
  int device = 0;
  if (driver.device(&device, ordinal) != 0) return;
  wire::Record record = wire::blank(wire::RecordKind::kDevice);
  wire::DeviceRecord& out = record.device;
  out.device = static_cast<std::uint32_t>(ordinal);
  char name[256] = {};
  if (driver.name != nullptr && driver.name(name, sizeof(name) - 1, device) == 0) out.name = intern(name);
  unsigned char uuid[16] = {};
  if (driver.uuid != nullptr && driver.uuid(uuid, device) == 0) {
    out.uuid_high = big_endian(uuid);
    out.uuid_low = big_endian(uuid + 8);
  }
  std::size_t bytes = 0;
  if (driver.memory != nullptr && driver.memory(&bytes, device) == 0) out.memory_bytes = bytes;
  out.units = attribute(driver, kMultiprocessors, device);
  out.compute_capability = attribute(driver, kMajor, device) * 10 + attribute(driver, kMinor, device);
  state_fact(record);
}

}  // namespace

void state_devices() {
  Driver driver{};
  int count = 0;
  if (!find_driver(&driver) || driver.count(&count) != 0) return;
  for (int i = 0; i < count && i < kMaxDevices; ++i) state_device(driver, i);
}

}  // namespace llmprof::collect
