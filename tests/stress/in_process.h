#pragma once
// The collector inside this very process, as an NVTX client and a BLAS library see it; and a way to give every test a
// collector that was never used: each runs in a child of its own.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collect/testing/test_log.h"

namespace llmprof::stress {

using Settings = std::vector<std::pair<const char*, std::string>>;

// Runs `body` in a forked child that records into a folder of its own, and reads the logs. The child's exit status is
// `body`'s result (or a signal, a sanitizer's report): anything but 0 fails the test.
std::vector<collect::testing::Log> record(const Settings& settings, const std::function<int()>& body);

// Events, of any thread.
void connect();  // once per process, before the first
void push(const char* name);
void pop();
void mark(const char* name, std::uint64_t payload);
std::uint64_t start(const char* name);
void end(std::uint64_t id);
void gemm(std::int64_t m);
void name_category(std::uint32_t category, const char* name);
void create_domain(const char* name);
void stop();  // the orderly end

// How much more than usual, from LLMPROF_STRESS: make soak asks for it.
int scale();

}  // namespace llmprof::stress
