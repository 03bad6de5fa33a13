#pragma once
// A GPU as the model sees it: memory, kernels by name, matrix products, graphs, all on one stream. gpu.cpp is the real
// one; tests have another that runs the same kernels on the CPU. Work is enqueued and fails later, so the first failure
// is kept, what follows it does nothing, and finish() tells. Used by one thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "workload/config.h"

namespace llmprof::workload::cuda {

using Pointer = std::uint64_t;  // an address in the device's memory

struct Launch {
  std::int64_t grid_x = 1, grid_y = 1, grid_z = 1;
  std::int64_t block_x = 1, block_y = 1;
  std::int64_t shared_bytes = 0;  // dynamic
};

// An argument of a kernel, by value; launch() copies it.
struct Argument {
  template <class T>
  Argument(const T& value) : data(&value), bytes(sizeof(T)) {}  // NOLINT: conversion is the point
  const void* data;
  std::size_t bytes;
};

// Row-major. `transposed`: stored as (columns, rows).
struct Matrix {
  Pointer data = 0;
  std::int64_t stride = 0;  // values from one stored row to the next
  ElementType type = ElementType::kFloat32;
  bool transposed = false;
  std::int64_t batch_stride = 0;  // values from one matrix of a batch to the next
};

// out (m, n) = a (m, k) · b (k, n), + bias (n) to each row where there is one, + out where it accumulates.
struct Product {
  std::int64_t m, n, k;
  std::int64_t batch = 1;
  Matrix a, b, out;
  Pointer bias = 0;  // of out's type
  bool accumulate = false;
};

// What was captured, launched as one.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void launch() = 0;  // enqueued
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;   // "NVIDIA H200, cuBLASLt 13.1.0"
  virtual bool has_bfloat16() const = 0;  // of matrix products

  virtual Pointer allocate(std::int64_t bytes) = 0;  // aligned to 256 bytes
  virtual void release(Pointer pointer) = 0;
  virtual void copy_in(Pointer to, const void* from, std::int64_t bytes) = 0;  // `from` may change on return
  virtual void copy_out(void* to, Pointer from, std::int64_t bytes) = 0;       // done on return
  virtual void copy(Pointer to, Pointer from, std::int64_t bytes) = 0;
  virtual void clear(Pointer to, std::int64_t bytes) = 0;  // to 0
  virtual void launch(const std::string& kernel, const Launch& launch, std::initializer_list<Argument> arguments) = 0;
  virtual void multiply(const Product& product) = 0;
  // What `enqueue` enqueues is not run, but captured. Copies from and to the host cannot be.
  virtual std::unique_ptr<Graph> capture(const std::function<void()>& enqueue) = 0;
  virtual Result<void> status() const = 0;  // the first failure so far
  virtual Result<void> finish() = 0;        // waits for everything enqueued, then the status
};

// Memory of the device, freed with the object.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, std::int64_t bytes) : device_(&device), pointer_(device.allocate(bytes)) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~Buffer() {
    if (device_ != nullptr) device_->release(pointer_);
  }
  Pointer pointer() const { return pointer_; }

 private:
  Device* device_ = nullptr;
  Pointer pointer_ = 0;
};

// The first GPU. Without a driver, a GPU or cuBLASLt, or in a build without CUDA: kUnsupported and the reason.
Result<std::shared_ptr<Device>> open_gpu();

}  // namespace llmprof::workload::cuda
