// What the unwinder reads from other people's files: an executable whose headers, unwind index and symbols are hostile,
// and single entries of an unwind table. Whatever they hold, reading ends.

#include <cstring>

#include "fuzz.h"
#include "host/stacks/module.h"
#include "host/stacks/perf.h"
#include "host/stacks/python.h"
#include "host/stacks/symbols.h"
#include "host/stacks/unwinder.h"

namespace llmprof::fuzz {
namespace {

using host::Registers;
using Bytes = std::vector<std::uint8_t>;

// The first byte chooses what the others are.
void run(std::string_view input) {
  if (input.empty()) return;
  const char what = input.front();
  const Bytes bytes(input.begin() + 1, input.end());
  if (what == 'E') {
    auto file = host::ElfFile::parse(host::from_memory(bytes));
    if (!file) return;
    host::Module module("/x", std::move(*file));
    for (const std::uint64_t address : {0x0ull, 0x1000ull, 0x1040ull, 0x401000ull, ~0ull}) {
      const host::UnwindRow* row = module.row(address);
      require(row == nullptr || (row->function_begin <= address && address < row->function_end));
      module.follows_call(address);
      require(!module.function(address).name.empty());
    }
    module.symbol("_PyRuntime");
  } else if (what == 'U') {
    const std::size_t half = bytes.size() / 2;
    const std::span<const std::uint8_t> all(bytes);
    wire::UnwindRow row;
    wire::unwind_row({0x3000, all.first(half)}, {0x2000, all.subspan(half)}, 0x1010, &row);
  } else if (what == 'X') {
    Registers registers;
    registers.set(host::kRsp, 0x1000);
    host::evaluate(bytes, 0x1008, registers, host::StackMemory(0x1000, bytes));
  } else if (what == 'P') {
    host::time_of_record(bytes);
    host::decode_record(bytes);
  } else if (what == 'N') {
    host::readable_function("_Z" + std::string(input.substr(1)));
    host::shorten_function(std::string(input.substr(1)));
  } else if (what == 'K') {
    const host::KernelSymbols symbols{std::string(input.substr(1))};
    std::uint64_t begin = 0;
    const auto* function = symbols.containing(0xffffffff81000010, begin);
    require(function == nullptr || (begin <= 0xffffffff81000010 && !function->name.empty()));
  } else if (what == 'L') {
    require(host::line_in_table(bytes, 7, 3) >= 0);
  }
}

// The smallest file with all that is read: one loaded segment, an unwind index of one function at 0x1000.
std::string elf_seed() {
  std::string file(0x1100, '\0');
  const auto put = [&](std::size_t at, auto value) { std::memcpy(file.data() + at, &value, sizeof value); };
  std::memcpy(file.data(),
              "\x7f"
              "ELF\x02\x01\x01",
              7);
  put(18, std::uint16_t{62});  // x86-64
  put(32, std::uint64_t{64});  // program headers
  put(54, std::uint16_t{56});
  put(56, std::uint16_t{2});
  const auto segment = [&](std::size_t at, std::uint32_t type, std::uint64_t offset, std::uint64_t bytes) {
    put(at, type);
    put(at + 4, std::uint32_t{5});
    for (const std::size_t field : {8, 16}) put(at + field, offset);
    put(at + 32, bytes);
  };
  segment(64, 1, 0, file.size());
  segment(120, 0x6474e550, 0x200, 20);
  const std::uint8_t index[]{1, 0x1b, 3, 0x3b};
  std::memcpy(file.data() + 0x200, index, sizeof index);
  put(0x208, std::uint32_t{1});
  put(0x20c, std::int32_t{0x1000 - 0x200});
  put(0x210, std::int32_t{0x340 - 0x200});
  const std::uint8_t cie[]{20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0};
  std::memcpy(file.data() + 0x300, cie, sizeof cie);
  put(0x340, std::uint32_t{16});
  put(0x344, std::uint32_t{0x44});
  put(0x348, std::int32_t{0x1000 - 0x348});
  put(0x34c, std::uint32_t{0x100});
  return file;
}

std::vector<std::string> seeds() {
  using namespace std::string_literals;
  return {"E" + elf_seed(),
          "U\0\0\0\0\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"s
          "\x01\0\0\0\xfc\xef\xff\xff\0\x01\0\0\0\x41\x0e\x10\x86\x02\x43\x0d\x06"s,
          "X\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"s,
          "P\x09\0\0\0\x02\0\x20\0"s + std::string(400, '\1'),
          "NN3foo3barIiEEvT_",
          "Kffffffff81000000 T _text\nffffffff81000010 t x\t[m]\n",
          "L\xe9\x02\x80\x00\xf0\x02\x00\x00\x00"s};
}

std::vector<std::string> dictionary() {
  return {
      "\x7f"
      "ELF",
      "zR",
      "zPLR",
      "\x1b",
      "\x3b",
      "operator<",
      "(anonymous namespace)"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
