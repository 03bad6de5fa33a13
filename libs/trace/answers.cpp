#include "trace/answers.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cstring>
#include <memory>
#include <span>

#include "base/file.h"
#include "base/sha256.h"
#include "base/version.h"
#include "trace/views.h"
#include "wire/primitives.h"

namespace llmprof::trace {
namespace {

constexpr std::string_view kMagic = "llmprof answers 1\n";
constexpr std::size_t kSealBytes = 32;
constexpr std::size_t kMaxAnswerBytes = 8u << 20, kMaxBytes = 32u << 20;

std::string hash(std::string_view bytes) {
  const auto digest = base::sha256(bytes);
  return {digest.begin(), digest.end()};
}

// 32 random bytes in the cache folder; "" where none can be kept.
std::string secret() {
  const std::string folder = base::cache_folder(), file = folder + "/answers.key";
  if (folder.empty()) return "";
  if (auto known = base::read_file(file, kSealBytes); known && known->size() == kSealBytes) return *known;
  std::string made(kSealBytes, '\0');
  if (::getrandom(made.data(), made.size(), 0) != static_cast<ssize_t>(made.size())) return "";
  return base::make_directories(folder) && base::write_file(file, made) ? made : "";
}

class Encoder {
 public:
  void number(std::uint64_t value) {
    std::uint8_t bytes[wire::kMaxVarintBytes];
    const std::uint8_t* end = wire::put_varint(bytes, value);
    out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(end - bytes));
  }
  void integer(std::int64_t value) { number(wire::zigzag(static_cast<std::uint64_t>(value))); }
  void real(double value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view value) {
    number(value.size());
    out += value;
  }
  void texts(const std::vector<std::string>& values) {
    number(values.size());
    for (const std::string& value : values) text(value);
  }
  bool full() const { return out.size() > kMaxAnswerBytes; }
  std::string out;
};

// Reads what Encoder wrote. After the end, or where the bytes make no sense, everything is 0 or empty and ok() false.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }
  std::uint64_t number() {
    std::uint64_t value = 0;
    const auto* begin = reinterpret_cast<const std::uint8_t*>(rest_.data());
    const std::uint8_t* end = wire::get_varint(begin, begin + rest_.size(), &value);
    if (end == nullptr) return fail(), 0;
    rest_.remove_prefix(static_cast<std::size_t>(end - begin));
    return value;
  }
  std::size_t count() {  // of things that take a byte or more each: damage must not ask for memory
    const std::uint64_t value = number();
    if (value > rest_.size()) return fail(), 0;
    return value;
  }
  std::int64_t integer() { return static_cast<std::int64_t>(wire::unzigzag(number())); }
  double real() {
    double value = 0;
    const std::string_view bytes = take(sizeof value);
    if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view text() { return take(number()); }
  std::vector<std::string> texts() {
    std::vector<std::string> values(count());
    for (std::string& value : values) value = text();
    return values;
  }

 private:
  void fail() {
    ok_ = false;
    rest_ = {};
  }
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) return fail(), std::string_view();
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::string_view rest_;
  bool ok_ = true;
};

void encode(const Value& value, Encoder& to) {
  to.number(static_cast<std::uint64_t>(value.type));
  if (value.type == Value::Type::kInt || value.type == Value::Type::kBool) to.integer(value.integer);
  if (value.type == Value::Type::kDouble) to.real(value.real);
  if (value.type == Value::Type::kText) to.text(value.text);
}

Value decode_value(Decoder& from) {
  Value value{.type = static_cast<Value::Type>(std::min<std::uint64_t>(from.number(), 4))};
  if (value.type == Value::Type::kInt || value.type == Value::Type::kBool) value.integer = from.integer();
  if (value.type == Value::Type::kDouble) value.real = from.real();
  if (value.type == Value::Type::kText) value.text = from.text();
  return value;
}

// Integers as differences: times and ids in order take a byte or two.
void encode_rows(std::span<const std::vector<std::int64_t>> values, std::span<const std::vector<double>> reals,
                 std::size_t count, Encoder& to) {
  to.number(count);
  for (std::size_t i = 0; i < values.size() && !to.full(); ++i) {
    const bool real = values[i].empty();
    to.number(real ? 1 : 0);
    std::uint64_t before = 0;
    for (const std::int64_t value : values[i]) {
      to.number(wire::zigzag(static_cast<std::uint64_t>(value) - before));
      before = static_cast<std::uint64_t>(value);
    }
    for (std::size_t row = 0; real && row < count; ++row) to.real(reals[i][row]);
  }
}

void decode_rows(Decoder& from, ColumnChunk& chunk) {
  for (std::size_t i = 0; i < chunk.values.size() && from.ok(); ++i) {
    const bool real = from.number() == 1;
    chunk.values[i].resize(real ? 0 : chunk.count);
    chunk.reals[i].resize(real ? chunk.count : 0);
    for (double& value : chunk.reals[i]) value = from.real();
    std::uint64_t value = 0;
    for (std::int64_t& out : chunk.values[i]) {
      value += wire::unzigzag(from.number());
      out = static_cast<std::int64_t>(value);
    }
  }
}

// The texts of both stand before the rows: a code may be used before its text is complete.
std::string with_names(const Columns& columns, const Encoder& rows) {
  Encoder out;
  out.texts(columns.names_of_columns);
  out.texts(columns.names);
  return out.out + rows.out;
}

std::string question(char kind, std::string_view sql) { return kind + std::string(sql); }

}  // namespace

Answers::Answers(std::string file, std::string_view basis) : file_(std::move(file)) {
  const std::string own = secret();
  if (own.empty()) return;
  std::string program(base::version());
  for (const std::string& view : view_statements({}, {})) program += view;
  seal_key_ = own + hash(program) + hash(basis);
  const auto bytes = base::read_file(file_, 2 * kMaxBytes);
  if (!bytes || !bytes->starts_with(kMagic) || bytes->size() < kMagic.size() + kSealBytes) return;
  const std::string_view payload = std::string_view(*bytes).substr(kMagic.size() + kSealBytes);
  if (std::string_view(*bytes).substr(kMagic.size(), kSealBytes) != seal(payload)) return;
  Decoder from(payload);
  while (from.ok() && !from.at_end()) {
    const std::string_view asked = from.text(), answer = from.text();
    if (from.ok()) add(std::string(asked), std::string(answer));
  }
  believed_ = true;
  changed_ = false;
}

std::string Answers::seal(std::string_view payload) const { return hash(seal_key_ + hash(payload)); }

void Answers::add(std::string question, std::string answer) {
  const std::size_t bytes = question.size() + answer.size();
  if (answer.size() > kMaxAnswerBytes || bytes_ + bytes > kMaxBytes) return;
  if (!answers_.try_emplace(std::move(question), std::move(answer)).second) return;
  bytes_ += bytes;
  changed_ = true;
}

std::optional<ResultTable> Answers::table(const std::string& sql) const {
  const auto found = answers_.find(question('t', sql));
  if (found == answers_.end()) return std::nullopt;
  Decoder from(found->second);
  ResultTable table{from.texts(), {}};
  table.rows.resize(from.count());
  for (auto& row : table.rows) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) row.push_back(decode_value(from));
  }
  return from.ok() ? std::optional(std::move(table)) : std::nullopt;
}

bool Answers::replay(const std::string& asked, const ChunkSink& sink) const {
  const auto found = answers_.find(asked);
  if (found == answers_.end()) return false;
  Decoder from(found->second);
  ColumnChunk chunk;
  chunk.names_of_columns = from.texts();
  chunk.names = from.texts();
  chunk.values.resize(chunk.names_of_columns.size());
  chunk.reals.resize(chunk.names_of_columns.size());
  while (from.ok() && !from.at_end()) {
    chunk.count = from.count();
    decode_rows(from, chunk);
    if (from.ok() && !sink(chunk)) break;
  }
  return true;
}

std::optional<Columns> Answers::columns(const std::string& sql) const {
  std::optional<Columns> all;
  replay(question('c', sql), [&](const ColumnChunk& chunk) {
    all = chunk;
    return true;
  });
  return all;
}

bool Answers::chunks(const std::string& sql, const ChunkSink& sink) const { return replay(question('k', sql), sink); }

void Answers::keep(const std::string& sql, const ResultTable& table) {
  if (!keeps()) return;
  Encoder to;
  to.texts(table.columns);
  to.number(table.rows.size());
  for (const auto& row : table.rows) {
    for (const Value& value : row) encode(value, to);
    if (to.full()) return;
  }
  add(question('t', sql), std::move(to.out));
}

void Answers::keep(const std::string& sql, const Columns& columns) {
  if (!keeps() || columns.rows() * columns.values.size() > kMaxAnswerBytes) return;
  Encoder rows;
  encode_rows(columns.values, {}, columns.rows(), rows);
  add(question('c', sql), with_names(columns, rows));
}

Answers::Recorder Answers::recorder(const std::string& sql, const ChunkSink& sink) {
  if (!keeps()) return {sink, [] {}};
  struct Recorded {
    Columns texts;
    Encoder rows;
    bool whole = true;
  };
  auto recorded = std::make_shared<Recorded>();
  return {[recorded, sink](const ColumnChunk& chunk) {
            if (recorded->whole) {
              encode_rows(chunk.values, chunk.reals, chunk.count, recorded->rows);
              recorded->texts.names_of_columns = chunk.names_of_columns;
              if (recorded->texts.names.size() != chunk.names.size()) recorded->texts.names = chunk.names;
            }
            const bool more = sink(chunk);
            recorded->whole = recorded->whole && more && !recorded->rows.full();
            return more;
          },
          [this, recorded, sql] {
            if (recorded->whole) add(question('k', sql), with_names(recorded->texts, recorded->rows));
          }};
}

void Answers::write() {
  if (!changed_) return;
  Encoder payload;
  for (const auto& [asked, answer] : answers_) {
    payload.text(asked);
    payload.text(answer);
  }
  changed_ = false;
  // Without them everything is computed again: a folder that is read-only or full is no reason to fail.
  (void)base::write_file(file_, fmt::format("{}{}{}", kMagic, seal(payload.out), payload.out));
}

}  // namespace llmprof::trace
