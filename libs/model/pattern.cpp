#include "model/pattern.h"

#include <memory>

namespace llmprof::model {
namespace {

constexpr std::size_t kMaxText = 512;  // of a pattern
constexpr std::size_t kMaxSteps = 1000;
constexpr int kMaxDepth = 32;
constexpr int kMaxRepeat = 4;  // numbers of layers have that many digits

}  // namespace

// Recursive descent over the pattern; each rule appends steps. A rule that is repeated is parsed again for each copy,
// which keeps steps relative to nothing.
class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : text_(text) {}

  bool parse(Pattern& pattern) {
    out_ = &pattern;
    if (text_.size() > kMaxText || !alternatives(0) || at_ != text_.size()) return false;
    return emit({.kind = Pattern::Kind::kMatch}) && out_->steps_.size() <= kMaxSteps;
  }

 private:
  using Kind = Pattern::Kind;
  using Step = Pattern::Step;
  using Set = Pattern::Set;

  bool more() const { return at_ < text_.size(); }
  bool eat(char letter) {
    if (!more() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }
  std::uint16_t here() const { return static_cast<std::uint16_t>(out_->steps_.size()); }
  bool emit(Step step) {
    if (out_->steps_.size() > kMaxSteps) return false;
    out_->steps_.push_back(step);
    return true;
  }
  bool emit_set(const Set& set) {
    out_->sets_.push_back(set);
    return emit({.kind = Kind::kSet, .set = static_cast<std::uint16_t>(out_->sets_.size() - 1)});
  }
  // Makes room for a step in front of those from `begin` on; jumps inside them move along.
  bool insert(std::uint16_t begin, Step step) {
    if (out_->steps_.size() > kMaxSteps) return false;
    for (std::size_t i = begin; i < out_->steps_.size(); ++i) {
      Step& moved = out_->steps_[i];
      if (moved.kind != Kind::kSplit && moved.kind != Kind::kJump) continue;
      ++moved.next;  // all of them lead into the moved steps
      ++moved.other;
    }
    out_->steps_.insert(out_->steps_.begin() + begin, step);
    return true;
  }

  bool alternatives(int depth) {
    if (depth > kMaxDepth) return false;
    const std::uint16_t begin = here();
    if (!sequence(depth)) return false;
    while (eat('|')) {
      // split(this, next) … jump(end) next …: the jump is patched below by standing in front of what follows it.
      if (!insert(begin, {.kind = Kind::kSplit})) return false;
      const std::uint16_t jump = here();
      if (!emit({.kind = Kind::kJump})) return false;
      out_->steps_[begin].next = static_cast<std::uint16_t>(begin + 1);
      out_->steps_[begin].other = here();
      if (!sequence(depth)) return false;
      out_->steps_[jump].next = here();
    }
    return true;
  }

  bool sequence(int depth) {
    while (more() && text_[at_] != '|' && text_[at_] != ')') {
      const std::uint16_t begin = here();
      const std::size_t begin_text = at_;
      if (!atom(depth) || !repetition(depth, begin, begin_text)) return false;
    }
    return true;
  }

  bool repetition(int depth, std::uint16_t begin, std::size_t begin_text) {
    if (eat('*')) {
      if (!star(begin)) return false;
    } else if (eat('+')) {
      const std::uint16_t split = here();
      if (!emit({.kind = Kind::kSplit, .next = begin, .other = static_cast<std::uint16_t>(split + 1)})) return false;
    } else if (eat('?')) {
      if (!maybe(begin)) return false;
    } else if (eat('{')) {
      if (!times(depth, begin, begin_text)) return false;
    } else {
      return true;
    }
    (void)eat('?');  // lazy or greedy: the same texts match
    return !more() || (text_[at_] != '*' && text_[at_] != '+' && text_[at_] != '{');
  }

  bool maybe(std::uint16_t begin) {
    if (!insert(begin, {.kind = Kind::kSplit})) return false;
    out_->steps_[begin].next = static_cast<std::uint16_t>(begin + 1);
    out_->steps_[begin].other = here();
    return true;
  }

  bool star(std::uint16_t begin) {
    if (!insert(begin, {.kind = Kind::kSplit}) || !emit({.kind = Kind::kJump, .next = begin})) return false;
    out_->steps_[begin].next = static_cast<std::uint16_t>(begin + 1);
    out_->steps_[begin].other = here();
    return true;
  }

  int number() {
    int value = 0;
    while (more() && text_[at_] >= '0' && text_[at_] <= '9' && value <= kMaxRepeat)
      value = value * 10 + (text_[at_++] - '0');
    return value;
  }

  bool again(int depth, std::size_t begin_text) {
    const std::size_t after = at_;
    at_ = begin_text;
    if (!atom(depth)) return false;
    at_ = after;
    return true;
  }

  // {n}, {n,}, {n,m} with n of at least 1: the first copy is there.
  bool times(int depth, std::uint16_t begin, std::size_t begin_text) {
    const int least = number();
    int most = least;
    bool endless = false;
    if (eat(',')) {
      endless = more() && text_[at_] == '}';
      most = endless ? least : number();
    }
    if (!eat('}') || least < 1 || most < least || most > kMaxRepeat || depth > 2) return false;
    for (int copy = 1; copy < most; ++copy) {
      begin = here();
      if (!again(depth, begin_text)) return false;
      if (copy >= least && !maybe(begin)) return false;
    }
    return !endless || emit({.kind = Kind::kSplit, .next = begin, .other = static_cast<std::uint16_t>(here() + 1)});
  }

  bool atom(int depth) {
    const char letter = text_[at_++];
    switch (letter) {
      case '(':
        if (eat('?') && !eat(':')) return false;  // looking around: no matching in one pass
        return alternatives(depth + 1) && eat(')');
      case '[':
        return bracket();
      case '.':
        return emit_set(Set().set());
      case '^':
        return emit({.kind = Kind::kBegin});
      case '$':
        return emit({.kind = Kind::kEnd});
      case '\\': {
        Set set;
        return escape(set) && emit_set(set);
      }
      case '*':
      case '+':
      case '?':
      case '{':
        return false;
      default:
        return emit_set(Set().set(static_cast<unsigned char>(letter)));
    }
  }

  static void add_range(Set& set, unsigned char first, unsigned char last) {
    for (int letter = first; letter <= last; ++letter) set.set(static_cast<std::size_t>(letter));
  }

  bool escape(Set& set) {
    if (!more()) return false;
    const char letter = text_[at_++];
    Set named;
    switch (letter) {
      case 'd':
      case 'D':
        add_range(named, '0', '9');
        break;
      case 'w':
      case 'W':
        add_range(named, '0', '9');
        add_range(named, 'a', 'z');
        add_range(named, 'A', 'Z');
        named.set('_');
        break;
      case 's':
      case 'S':
        for (const char space : {' ', '\t', '\n', '\r', '\f', '\v'}) named.set(static_cast<unsigned char>(space));
        break;
      default:
        if ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9')) {
          return false;  // \b, \1 and others
        }
        named.set(static_cast<unsigned char>(letter));
        set |= named;
        return true;
    }
    set |= letter >= 'a' ? named : ~named;
    return true;
  }

  bool bracket() {
    Set set;
    const bool negated = eat('^');
    for (bool first = true; more() && (first || text_[at_] != ']'); first = false) {
      const char letter = text_[at_++];
      if (letter == '\\') {
        if (!escape(set)) return false;
      } else if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        const char last = text_[at_ + 1];
        if (last == '\\' || static_cast<unsigned char>(last) < static_cast<unsigned char>(letter)) return false;
        add_range(set, static_cast<unsigned char>(letter), static_cast<unsigned char>(last));
        at_ += 2;
      } else {
        set.set(static_cast<unsigned char>(letter));
      }
    }
    return eat(']') && emit_set(negated ? ~set : set);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Pattern* out_ = nullptr;
};

std::optional<Pattern> Pattern::compile(std::string_view text) {
  Pattern pattern;
  if (!PatternParser(text).parse(pattern)) return std::nullopt;
  return pattern;
}

// The steps that the text so far can have led to, each once.
struct Pattern::Threads {
  explicit Threads(std::size_t steps) : seen(steps, 0) {}
  std::vector<std::uint16_t> now, next, stack;
  std::vector<std::uint32_t> seen;  // round in which a step was added last
  std::uint32_t round = 0;
  bool matched = false;
};

void Pattern::follow(Threads& threads, std::uint16_t first, std::size_t at, std::size_t end) const {
  threads.stack.push_back(first);
  while (!threads.stack.empty()) {
    const std::uint16_t index = threads.stack.back();
    threads.stack.pop_back();
    if (threads.seen[index] == threads.round) continue;
    threads.seen[index] = threads.round;
    const Step& step = steps_[index];
    const auto after = static_cast<std::uint16_t>(index + 1);
    switch (step.kind) {
      case Kind::kSet:
        threads.next.push_back(index);
        break;
      case Kind::kSplit:
        threads.stack.push_back(step.other);
        threads.stack.push_back(step.next);
        break;
      case Kind::kJump:
        threads.stack.push_back(step.next);
        break;
      case Kind::kBegin:
        if (at == 0) threads.stack.push_back(after);
        break;
      case Kind::kEnd:
        if (at == end) threads.stack.push_back(after);
        break;
      case Kind::kMatch:
        threads.matched = true;
        break;
    }
  }
}

bool Pattern::matches(std::string_view text) const {
  Threads threads(steps_.size());
  threads.round = 1;
  follow(threads, 0, 0, text.size());
  for (std::size_t at = 0; at < text.size() && !threads.matched && !threads.next.empty(); ++at) {
    threads.now.swap(threads.next);
    threads.next.clear();
    ++threads.round;
    for (const std::uint16_t index : threads.now) {
      if (!sets_[steps_[index].set].test(static_cast<unsigned char>(text[at]))) continue;
      follow(threads, static_cast<std::uint16_t>(index + 1), at + 1, text.size());
    }
  }
  return threads.matched;
}

}  // namespace llmprof::model
