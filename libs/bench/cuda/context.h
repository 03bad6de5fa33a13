#pragma once
// One GPU through CUDA's driver library, loaded by dlopen: no CUDA header is needed to include this, no GPU to build or
// start llmprof. Every call's result is checked. Used by one thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace llmprof::bench::cuda {

using Pointer = std::uint64_t;  // an address in the device's memory
struct StreamTag;
using Stream = StreamTag*;  // CUstream, which is cudaStream_t

class Context;
class Blas;  // blas.h
class Dnn;   // dnn.h

struct Properties {
  std::string name;
  std::string bus_id;        // "0000:0a:00.0": how NVML finds the same GPU
  int major = 0, minor = 0;  // compute capability
  std::int64_t multiprocessors = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t shared_bytes_per_block = 0;  // at most, with the attribute set
  std::int64_t shared_bytes_per_multiprocessor = 0;
  double clock_mhz = 0;                                           // the highest the driver reports
  int driver_version = 0;                                         // 13000
  std::int64_t capability() const { return major * 10 + minor; }  // 90
};

// A value that a move takes along: what is left behind is empty. Assigning exchanges the two.
template <class T>
class Handle {
 public:
  Handle() = default;
  Handle(T value) : value_(std::move(value)) {}  // NOLINT: conversion is the point
  Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, T{})) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  operator const T&() const { return value_; }  // NOLINT
  const T& operator->() const { return value_; }
  const T& operator*() const { return value_; }
  T& operator*() { return value_; }

 private:
  T value_{};
};

// Memory of the device; freed with the object, which must not outlive its Context.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&&) = default;
  Buffer& operator=(Buffer&&) = default;
  ~Buffer();
  Pointer pointer() const { return pointer_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  friend class Context;
  Handle<Context*> context_;
  Handle<Pointer> pointer_;
  Handle<std::int64_t> bytes_;
};

struct Launch {
  std::int64_t grid_x = 1, grid_y = 1, grid_z = 1;
  std::int64_t block_x = 1, block_y = 1, block_z = 1;
  std::int64_t shared_bytes = 0;  // dynamic
};

// An argument of a kernel, by value. launch() copies it.
struct Argument {
  template <class T>
  Argument(const T& value) : data(&value), bytes(sizeof(T)) {}  // NOLINT: conversion is the point
  const void* data;
  std::size_t bytes;
};

class Context {
 public:
  // `index` as CUDA counts, CUDA_VISIBLE_DEVICES applied. kUnsupported without a driver or a GPU, with the reason.
  static Result<std::unique_ptr<Context>> open(int index);
  static Result<int> device_count();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Properties& properties() const;
  Stream stream() const;  // the one that everything here runs on, not the default stream
  Result<void> synchronize();
  // After a fault of a kernel no further call succeeds: open another Context, when this one is gone.
  bool broken() const;

  Result<Buffer> allocate(std::int64_t bytes);  // 256-byte aligned; kUnsupported when there is not enough memory
  Result<std::int64_t> free_bytes();
  Result<void> copy_in(Pointer to, const void* from, std::int64_t bytes);      // from host memory, done on return
  Result<void> copy_out(void* to, Pointer from, std::int64_t bytes);           // to host memory, done on return
  Result<void> copy(Pointer to, Pointer from, std::int64_t bytes);             // on the device, enqueued
  Result<void> set_bytes(Pointer to, std::uint8_t value, std::int64_t bytes);  // enqueued

  // A kernel of ops/*.cu or cuda/*.cu by its extern "C" name. Enqueued on the stream.
  Result<void> launch(std::string_view kernel, const Launch& launch, std::initializer_list<Argument> arguments);
  // How many blocks of it a multiprocessor holds.
  Result<int> blocks_per_multiprocessor(std::string_view kernel, int block_threads, std::int64_t shared_bytes);

  // Time between two points of the stream, by events of the device, in seconds.
  Result<double> time(const std::function<Result<void>()>& enqueue);

  // What `enqueue` puts on the stream, as a graph that is launched as one. Replays it until destroyed.
  class Graph {
   public:
    Graph() = default;
    Graph(Graph&&) = default;
    Graph& operator=(Graph&&) = default;
    ~Graph();
    Result<void> launch();  // enqueued

   private:
    friend class Context;
    Handle<Context*> context_;
    Handle<void*> executable_;
  };
  Result<Graph> capture(const std::function<Result<void>()>& enqueue);

  // Libraries, opened on first use: kUnsupported if not found here, with the names that were tried.
  Result<Blas*> blas();
  Result<Dnn*> dnn();

 private:
  friend class Buffer;
  friend class Graph;
  struct State;
  explicit Context(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// By blas.cpp and dnn.cpp; Context::blas() and dnn() keep what they give.
Result<std::shared_ptr<Blas>> open_blas(Context& context);
Result<std::shared_ptr<Dnn>> open_dnn(Context& context);

}  // namespace llmprof::bench::cuda
