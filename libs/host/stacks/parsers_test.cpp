// What reads foreign bytes: right on good ones, harmless on all others.
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "host/stacks/address_space.h"
#include "host/stacks/module.h"
#include "host/stacks/perf.h"
#include "host/stacks/unwinder.h"

namespace llmprof::host {
namespace {

using Bytes = std::vector<std::uint8_t>;
using wire::RuleKind;

// CIE: version 1, "zR", code factor 1, data factor -8, return address in 16, pointers as 4-byte offsets; then CFA =
// rsp + 8 and the return address at CFA - 8.
const Bytes kCie{0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x80 | 16, 1};

// FDE of [0x1000, 0x1100), standing at 0x2000: push rbp after 1 byte, mov rbp, rsp after 4.
Bytes fde() {
  Bytes bytes{1, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x01, 0, 0, 0};  // CIE, begin (below), 256 bytes, no augmentation
  const std::int32_t begin = 0x1000 - (0x2000 + 4);
  std::memcpy(bytes.data() + 4, &begin, sizeof begin);
  const Bytes program{0x40 | 1, 0x0e, 16, 0x80 | 6, 2, 0x40 | 3, 0x0a, 0x0d, 6, 0x40 | 60, 0x0b};
  bytes.insert(bytes.end(), program.begin(), program.end());
  return bytes;
}

std::optional<wire::UnwindRow> row_at(const Bytes& cie, const Bytes& entry, std::uint64_t pc) {
  wire::UnwindRow row;
  if (!wire::unwind_row({0x3000, cie}, {0x2000, entry}, pc, &row)) return std::nullopt;
  return row;
}

TEST(UnwindRow, FollowsThePrologue) {
  const auto at_entry = row_at(kCie, fde(), 0x1000);
  ASSERT_TRUE(at_entry);
  EXPECT_EQ(at_entry->function_begin, 0x1000u);
  EXPECT_EQ(at_entry->function_end, 0x1100u);
  EXPECT_EQ(at_entry->cfa.number, kRsp);
  EXPECT_EQ(at_entry->cfa.offset, 8);
  EXPECT_EQ(at_entry->rules[kRip].kind, RuleKind::kAtCfa);
  EXPECT_EQ(at_entry->rules[kRip].offset, -8);
  EXPECT_EQ(at_entry->rules[kRbp].kind, RuleKind::kSame);

  const auto pushed = row_at(kCie, fde(), 0x1001);
  ASSERT_TRUE(pushed);
  EXPECT_EQ(pushed->cfa.offset, 16);
  EXPECT_EQ(pushed->rules[kRbp].offset, -16);

  const auto body = row_at(kCie, fde(), 0x1004);
  ASSERT_TRUE(body);
  EXPECT_EQ(body->cfa.number, kRbp);
  EXPECT_EQ(body->cfa.offset, 16);

  const auto restored = row_at(kCie, fde(), 0x1040);  // 4 + 60
  ASSERT_TRUE(restored);
  EXPECT_EQ(restored->cfa.number, kRsp);
  EXPECT_FALSE(restored->outermost());
}

TEST(UnwindRow, CoversItsFunctionOnly) {
  EXPECT_TRUE(row_at(kCie, fde(), 0x10ff));
  EXPECT_FALSE(row_at(kCie, fde(), 0x1100));
  EXPECT_FALSE(row_at(kCie, fde(), 0xfff));
}

TEST(UnwindRow, KnowsTheOutermostFrame) {
  Bytes entry = fde();
  entry.resize(13);
  entry.insert(entry.end(), {0x07, 16});  // the return address is undefined
  const auto row = row_at(kCie, entry, 0x1000);
  ASSERT_TRUE(row);
  EXPECT_TRUE(row->outermost());
}

TEST(UnwindRow, SurvivesEveryCutAndChange) {
  for (std::size_t bytes = 0; bytes < kCie.size(); ++bytes)
    row_at(Bytes(kCie.begin(), kCie.begin() + bytes), fde(), 0x1004);
  const Bytes whole = fde();
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const auto row = row_at(kCie, Bytes(whole.begin(), whole.begin() + bytes), 0x1004);
    EXPECT_TRUE(bytes >= 13 || !row) << bytes;
  }
  std::mt19937 random(1);
  for (int i = 0; i < 50'000; ++i) {
    Bytes cie = kCie, entry = whole;
    Bytes& changed = i % 2 == 0 ? cie : entry;
    for (int j = 0; j < 3; ++j) changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
    row_at(cie, entry, 0x1000 + random() % 256);
  }
}

std::optional<std::uint64_t> value_of(const Bytes& program) {
  Registers registers;
  registers.set(kRsp, 0x1000);
  registers.set(kRip, 0x4005);
  const Bytes memory{0x11, 0x22, 0, 0, 0, 0, 0, 0};
  return evaluate(program, std::nullopt, registers, StackMemory(0x1000, memory));
}

// What linkers write for a PLT entry: 8 + rsp + (rip % 16 >= 11) * 8.
TEST(DwarfExpression, ComputesTheFrameOfAPltEntry) {
  const Bytes plt{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
  EXPECT_EQ(value_of(plt), 0x1008u);  // 0x4005 % 16 = 5 < 11
}

TEST(DwarfExpression, ReadsTheStackAndNothingElse) {
  EXPECT_EQ(value_of({0x77, 0, 0x06}), 0x2211u);
  EXPECT_FALSE(value_of({0x77, 1, 0x06}));  // 8 bytes from 0x1001 were not copied
  EXPECT_FALSE(value_of({0x70, 0}));        // rax is not known
}

TEST(DwarfExpression, EndsAlways) {
  EXPECT_FALSE(value_of({}));
  EXPECT_FALSE(value_of({0x22}));              // plus, on nothing
  EXPECT_FALSE(value_of({0x2f, 0xfd, 0xff}));  // jumps to itself
  EXPECT_FALSE(value_of({0x2f, 0x00, 0x80}));  // jumps before the begin
  EXPECT_FALSE(value_of(Bytes(100, 0x31)));    // pushes more than there is room for
  std::mt19937 random(2);
  for (int i = 0; i < 50'000; ++i) {
    Bytes program(1 + random() % 24);
    for (std::uint8_t& byte : program) byte = static_cast<std::uint8_t>(random());
    value_of(program);
  }
}

Bytes own_executable() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

__attribute__((noinline)) int known_function(int value) { return value * 3 + static_cast<int>(::getpid()); }

TEST(ElfFile, FindsRowsAndNamesOfItsOwnProgram) {
  ModuleCache modules;
  AddressSpace space(::getpid(), modules);
  AddressSpace::Place place;
  ASSERT_TRUE(space.find(reinterpret_cast<std::uint64_t>(&known_function), 1, place));
  ASSERT_NE(place.module, nullptr);
  EXPECT_NE(place.module->row(place.address), nullptr);
  EXPECT_EQ(place.module->function(place.address).name, "llmprof::host::(anonymous namespace)::known_function");
  EXPECT_EQ(place.module->function(place.address).begin, place.address);
  EXPECT_FALSE(space.find(reinterpret_cast<std::uint64_t>(&place), 2, place));  // a stack is not executable
  EXPECT_GT(known_function(1), 0);
}

TEST(ElfFile, SurvivesDamage) {
  Bytes whole = own_executable();
  ASSERT_GT(whole.size(), 4096u);
  auto file = ElfFile::parse(from_memory(whole));
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->symbols().empty());
  EXPECT_TRUE(Module("/x", std::move(*file)).has_unwind_table());
  for (const std::size_t bytes : {0, 1, 63, 64, 100, 4096}) {
    const auto cut = ElfFile::parse(from_memory(Bytes(whole.begin(), whole.begin() + bytes)));
    EXPECT_TRUE(bytes > 64 || !cut);
    if (cut) cut->symbols();
  }
  std::mt19937 random(3);
  const Bytes head(whole.begin(), whole.begin() + 4096);
  for (int i = 0; i < 2000; ++i) {
    Bytes changed = head;
    for (int j = 0; j < 4; ++j) changed[random() % 1024] = static_cast<std::uint8_t>(random());
    auto damaged = ElfFile::parse(from_memory(std::move(changed)));
    if (!damaged) continue;
    damaged->build_id();
    damaged->address_of_offset(random());
    Module("/x", std::move(*damaged)).row(random());
  }
}

template <class T>
void append(Bytes& bytes, T value) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(&value);
  bytes.insert(bytes.end(), at, at + sizeof value);
}

Bytes sample_record() {
  Bytes bytes;
  append<perf_event_header>(bytes, {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 0});
  append<std::uint32_t>(bytes, 10);
  append<std::uint32_t>(bytes, 11);
  append<std::uint64_t>(bytes, 12);  // time
  append<std::uint64_t>(bytes, 13);  // period
  append<std::uint64_t>(bytes, 1);   // addresses in the kernel
  append<std::uint64_t>(bytes, 0xffffffff81000010);
  append<std::uint64_t>(bytes, 2);  // 64-bit registers
  for (std::uint64_t i = 0; i < kRegisters; ++i) append<std::uint64_t>(bytes, 100 + i);
  append<std::uint64_t>(bytes, 16);  // bytes of stack
  append<std::uint64_t>(bytes, 7);
  append<std::uint64_t>(bytes, 8);
  append<std::uint64_t>(bytes, 8);  // of them copied
  return bytes;
}

TEST(PerfRecord, DecodesASample) {
  const Bytes bytes = sample_record();
  const auto record = decode_record(bytes);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->pid, 10u);
  EXPECT_EQ(record->tid, 11u);
  EXPECT_EQ(record->ts_ns, 12u);
  EXPECT_EQ(time_of_record(bytes), 12u);
  const auto& sample = std::get<PerfSample>(record->content);
  EXPECT_EQ(sample.period_ns, 13u);
  EXPECT_FALSE(sample.in_kernel);
  EXPECT_EQ(sample.chain.size(), 8u);
  EXPECT_EQ(sample.registers.value[3], 101u);     // rbx is second in the kernel's order
  EXPECT_EQ(sample.registers.value[kRip], 108u);  // ninth
  EXPECT_EQ(sample.registers.value[15], 116u);    // r15 is last
  EXPECT_EQ(sample.stack.size(), 8u);
}

TEST(PerfRecord, DecodesAMapping) {
  Bytes bytes;
  append<perf_event_header>(bytes, {PERF_RECORD_MMAP2, 0, 0});
  append<std::uint64_t>(bytes, 0);
  for (const std::uint64_t word : {0x1000, 0x2000, 0x3000, 0, 42, 0}) append(bytes, word);
  append<std::uint32_t>(bytes, PROT_READ | PROT_EXEC);
  append<std::uint32_t>(bytes, 0);
  for (const char letter : {'/', 'x', '\0', '\0', '\0', '\0', '\0', '\0'}) append(bytes, letter);
  append<std::uint32_t>(bytes, 10);
  append<std::uint32_t>(bytes, 11);
  append<std::uint64_t>(bytes, 12);
  const auto record = decode_record(bytes);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->pid, 10u);
  const Mapping& mapping = std::get<PerfMapping>(record->content).mapping;
  EXPECT_EQ(mapping.begin, 0x1000u);
  EXPECT_EQ(mapping.end, 0x3000u);
  EXPECT_EQ(mapping.file_offset, 0x3000u);
  EXPECT_EQ(mapping.inode, 42u);
  EXPECT_EQ(mapping.path, "/x");
}

TEST(PerfRecord, RefusesWhatIsCutShort) {
  const Bytes whole = sample_record();
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(decode_record(std::span(whole).first(bytes))) << bytes;
  std::mt19937 random(4);
  for (int i = 0; i < 20'000; ++i) {
    Bytes changed = whole;
    for (int j = 0; j < 3; ++j) changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
    decode_record(changed);
    time_of_record(changed);
  }
}

TEST(FunctionName, LeavesOutWhatMakesNamesLong) {
  EXPECT_EQ(readable_function("memcpy"), "memcpy");
  EXPECT_EQ(readable_function("_ZN3foo3barEi"), "foo::bar");
  EXPECT_EQ(shorten_function("void at::native::(anonymous namespace)::copy<float, int>(at::Tensor const&)"),
            "at::native::(anonymous namespace)::copy");
  EXPECT_EQ(shorten_function("std::vector<int, std::allocator<int> >::operator[](unsigned long) const"),
            "std::vector::operator[]");
  EXPECT_EQ(shorten_function("std::ostream& operator<< <char>(std::ostream&, char)"), "operator<<");
  EXPECT_EQ(shorten_function("run(int)::{lambda(int)#1}::operator()(int) const"), "run::{lambda#1}::operator()");
  EXPECT_EQ(shorten_function("a > b"), "a > b");
}

TEST(AddressSpace, NewMappingsReplaceWhatTheyCover) {
  ModuleCache modules;
  AddressSpace space(0, modules);  // no process: /proc says nothing
  AddressSpace::Place place;
  space.add({.begin = 0x1000, .end = 0x5000});
  space.add({.begin = 0x2000, .end = 0x3000});
  for (const std::uint64_t address : {0x1000, 0x2000, 0x2fff, 0x3000, 0x4fff})
    EXPECT_TRUE(space.find(address, 1, place));
  EXPECT_FALSE(space.find(0x5000, 1, place));
  space.add({.begin = 0x0000, .end = 0x4000});
  EXPECT_TRUE(space.find(0x0, 1, place));
  EXPECT_TRUE(space.find(0x4000, 1, place));
  space.clear();
  EXPECT_FALSE(space.find(0x4000, 1, place));
}

}  // namespace
}  // namespace llmprof::host
