// A driver for monitor_test.py: one GPU that draws 250 W. FAKE_NVML says how it misbehaves: "hang_init" and "hang"
// never return, from the beginning or from the third reading of the power on; "lost" answers that the GPU is lost from
// there on.

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kSuccess = 0, kNotSupported = 3, kLost = 15 };

typedef struct {
  unsigned field, scope;
  long long timestamp, latency;
  unsigned type;
  int status;
  unsigned long long value;
} FieldValue;

static int is(const char* mood) {
  const char* set = getenv("FAKE_NVML");
  return set != NULL && strcmp(set, mood) == 0;
}

static void hang(void) {
  for (;;) pause();
}

int nvmlInit_v2(void) { return kSuccess; }
int nvmlShutdown(void) { return kSuccess; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  strncpy(text, "1.2.3", size);
  return kSuccess;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = (void*)(unsigned long)(index + 1);
  return kSuccess;
}
int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  (void)device;
  strncpy(text, "Fake GPU", size);
  return kSuccess;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  (void)device;
  strncpy(text, "GPU-00112233-4455-6677-8899-aabbccddeeff", size);
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  (void)device;
  memory[0] = 8ull << 30;
  memory[1] = 6ull << 30;
  memory[2] = 2ull << 30;
  return kSuccess;
}
int nvmlDeviceGetMaxClockInfo(void* device, unsigned which, unsigned* mhz) {
  (void)device, (void)which;
  *mhz = 2000;
  return kSuccess;
}
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  (void)device;
  *major = 9, *minor = 0;
  return kSuccess;
}
int nvmlDeviceGetClockInfo(void* device, unsigned which, unsigned* mhz) {
  (void)device;
  *mhz = which == 1 ? 1500 : 3000;
  return kSuccess;
}
int nvmlDeviceGetFieldValues(void* device, int count, FieldValue* fields) {
  (void)device;
  static int calls = 0;
  ++calls;
  if (calls > 3 && is("hang")) hang();
  if (calls > 3 && is("lost")) return kLost;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  for (int i = 0; i < count; ++i) {
    fields[i].type = 3;
    fields[i].status = kSuccess;
    if (fields[i].field == 186) {
      fields[i].value = 250000;
    } else if (fields[i].field == 83) {  // 250 W for ever
      fields[i].value = (unsigned long long)now.tv_sec * 250000ull + (unsigned long long)now.tv_nsec / 4000ull;
    } else {
      fields[i].status = kNotSupported;
    }
  }
  return kSuccess;
}
