#include "importers/nsys_sqlite/input_vfs.h"

#include <algorithm>
#include <cstring>

namespace llmprof::importers::nsys {
namespace {

constexpr std::size_t kReadAhead = 256 << 10;

struct File {
  sqlite3_file base;
  InputVfs* vfs;
};

int close_file(sqlite3_file*) { return SQLITE_OK; }
int read_file(sqlite3_file* file, void* out, int size, sqlite3_int64 offset) {
  if (size < 0 || offset < 0) return SQLITE_IOERR_READ;
  return reinterpret_cast<File*>(file)->vfs->read(static_cast<char*>(out), static_cast<std::size_t>(size),
                                                  static_cast<std::uint64_t>(offset));
}
int write_file(sqlite3_file*, const void*, int, sqlite3_int64) { return SQLITE_READONLY; }
int truncate_file(sqlite3_file*, sqlite3_int64) { return SQLITE_READONLY; }
int sync_file(sqlite3_file*, int) { return SQLITE_OK; }
int size_of_file(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(reinterpret_cast<File*>(file)->vfs->size());
  return SQLITE_OK;
}
int lock_file(sqlite3_file*, int) { return SQLITE_OK; }
int is_reserved(sqlite3_file*, int* reserved) {
  *reserved = 0;
  return SQLITE_OK;
}
int control_file(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector_size(sqlite3_file*) { return 4096; }
int characteristics(sqlite3_file*) { return SQLITE_IOCAP_IMMUTABLE; }

const sqlite3_io_methods kMethods = [] {
  sqlite3_io_methods methods{};
  methods.iVersion = 1;  // no shared memory, no mapping
  methods.xClose = close_file;
  methods.xRead = read_file;
  methods.xWrite = write_file;
  methods.xTruncate = truncate_file;
  methods.xSync = sync_file;
  methods.xFileSize = size_of_file;
  methods.xLock = lock_file;
  methods.xUnlock = lock_file;
  methods.xCheckReservedLock = is_reserved;
  methods.xFileControl = control_file;
  methods.xSectorSize = sector_size;
  methods.xDeviceCharacteristics = characteristics;
  return methods;
}();

int open_file(sqlite3_vfs* vfs, const char*, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0) return SQLITE_CANTOPEN;  // journals, temporary files
  auto* opened = reinterpret_cast<File*>(file);
  opened->vfs = static_cast<InputVfs*>(vfs->pAppData);
  opened->base.pMethods = &kMethods;
  if (out_flags != nullptr) *out_flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
  return SQLITE_OK;
}

int delete_file(sqlite3_vfs*, const char*, int) { return SQLITE_READONLY; }
int exists(sqlite3_vfs*, const char*, int, int* answer) {
  *answer = 0;
  return SQLITE_OK;
}
int full_name(sqlite3_vfs*, const char* name, int room, char* out) {
  sqlite3_snprintf(room, out, "%s", name);
  return SQLITE_OK;
}
int no_randomness(sqlite3_vfs*, int size, char* out) {
  std::memset(out, 0, static_cast<std::size_t>(std::max(size, 0)));
  return size;
}
int no_sleep(sqlite3_vfs*, int) { return 0; }
int no_time(sqlite3_vfs*, double* days) {
  *days = 0;
  return SQLITE_OK;
}
int no_error(sqlite3_vfs*, int, char*) { return 0; }

}  // namespace

InputVfs::InputVfs(Input& input, std::uint64_t plain_bytes) : input_(input), size_(plain_bytes) {
  vfs_.iVersion = 1;
  vfs_.szOsFile = sizeof(File);
  vfs_.mxPathname = 256;
  vfs_.zName = kName;
  vfs_.pAppData = this;
  vfs_.xOpen = open_file;
  vfs_.xDelete = delete_file;
  vfs_.xAccess = exists;
  vfs_.xFullPathname = full_name;
  vfs_.xRandomness = no_randomness;
  vfs_.xSleep = no_sleep;
  vfs_.xCurrentTime = no_time;
  vfs_.xGetLastError = no_error;
  sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);  // one thread reads here: no locks, where nothing used SQLite before
  sqlite3_vfs_register(&vfs_, 0);
}

InputVfs::~InputVfs() { sqlite3_vfs_unregister(&vfs_); }

bool InputVfs::fill(std::uint64_t offset, std::size_t wanted) {
  ahead_.resize(wanted);
  ahead_offset_ = offset;
  std::size_t have = 0;
  while (have < wanted) {
    const auto got = input_.read_at(offset + have, ahead_.data() + have, wanted - have);
    if (!got) {
      error_ = got.error().message;
      ahead_.clear();
      return false;
    }
    if (*got == 0) break;
    have += *got;
  }
  ahead_.resize(have);
  bytes_read_ += have;
  return true;
}

void InputVfs::patch_page_count(char* out, std::size_t size, std::uint64_t offset) const {
  constexpr std::uint64_t kPlace = 28;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const std::uint64_t at = kPlace + i;
    if (at >= offset && at - offset < size) out[at - offset] = static_cast<char>(pages_ >> (8 * (3 - i)) & 0xff);
  }
}

int InputVfs::read(char* out, std::size_t size, std::uint64_t offset) {
  const bool held = offset >= ahead_offset_ && offset - ahead_offset_ <= ahead_.size() &&
                    size <= ahead_.size() - (offset - ahead_offset_);
  if (!held) {
    const std::size_t wanted = offset == next_offset_ ? std::max(size, kReadAhead) : size;
    if (!fill(offset, wanted)) return SQLITE_IOERR_READ;
  }
  next_offset_ = offset + size;
  const std::size_t skip = offset - ahead_offset_;
  const std::size_t have = std::min(size, ahead_.size() - std::min(skip, ahead_.size()));
  std::memcpy(out, ahead_.data() + skip, have);
  if (pages_ != 0) patch_page_count(out, have, offset);
  if (have == size) return SQLITE_OK;
  std::memset(out + have, 0, size - have);  // as SQLite asks for
  return SQLITE_IOERR_SHORT_READ;
}

}  // namespace llmprof::importers::nsys
