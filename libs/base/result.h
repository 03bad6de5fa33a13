#pragma once
// Result<T>: a value or an Error. Library code returns it; nothing of ours throws. The member names are those of
// std::expected (absent from gcc 12 in C++20 mode), so it can become an alias one day.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace llmprof {

enum class ErrorCode : std::uint8_t {
  kUsage,         // the user asked for something impossible           exit status 1
  kNotFound,      // a file, run or symbol is not there                exit status 2
  kUnsupported,   // known, but not by this build or machine           exit status 2
  kPermission,    // the system said no                                exit status 2
  kCorruptInput,  // the input breaks its own format                   exit status 2
  kIo,            // reading or writing failed                         exit status 2
  kInterrupted,   // the user pressed Ctrl-C                           exit status 130
  kInternal,      // a bug in llmprof                                  exit status 70
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // what went wrong, with the value that made it wrong
  std::string hint;     // what to do about it; may be empty
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: conversion is the point
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT
  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() { return *std::get_if<0>(&state_); }
  const T& value() const { return *std::get_if<0>(&state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Error& error() { return *std::get_if<1>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT
  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  Error& error() { return *error_; }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace llmprof

// LLMPROF_TRY(expr): returns the error of expr from this function, if it has one.
#define LLMPROF_TRY(expr)                                  \
  do {                                                     \
    if (auto llmprof_result_ = (expr); !llmprof_result_) { \
      return std::move(llmprof_result_.error());           \
    }                                                      \
  } while (false)

#define LLMPROF_CONCAT_(a, b) a##b
#define LLMPROF_CONCAT(a, b) LLMPROF_CONCAT_(a, b)
#define LLMPROF_LET_(temporary, declaration, expr) \
  auto temporary = (expr);                         \
  if (!temporary) {                                \
    return std::move(temporary.error());           \
  }                                                \
  declaration = std::move(*temporary)

// LLMPROF_LET(const Header header, parse_header(bytes)): declares header, or returns the error.
#define LLMPROF_LET(declaration, ...) LLMPROF_LET_(LLMPROF_CONCAT(llmprof_let_, __LINE__), declaration, (__VA_ARGS__))
