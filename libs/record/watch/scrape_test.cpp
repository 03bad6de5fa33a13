#include "record/watch/scrape.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "trace/run.h"

namespace llmprof::record {
namespace {

TEST(ScrapeUrl, ItsPartsAndWhatIsRefused) {
  const auto parts = [](std::string_view url) {
    const auto target = parse_scrape_url(url);
    return target ? target->host + " " + target->port + " " + target->path : "refused";
  };
  EXPECT_EQ(parts("http://127.0.0.1:8000/metrics"), "127.0.0.1 8000 /metrics");
  EXPECT_EQ(parts("http://server:9000"), "server 9000 /metrics");
  EXPECT_EQ(parts("http://server/"), "server 80 /metrics");
  EXPECT_EQ(parts("http://[::1]:8000/engine?x=1"), "::1 8000 /engine?x=1");
  for (const char* url : {"", "server:8000", "https://server", "http://", "http://server:0", "http://server:70000",
                          "http://server:80x", "http://user@server:80/", "http://server/a b", "http://server\r\nX: y"})
    EXPECT_EQ(parts(url), "refused") << url;
}

// Answers connections one after the other with what it was given, and says when all of that was asked for.
class Server {
 public:
  explicit Server(std::vector<std::string> answers) : answers_(std::move(answers)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { work(); });
  }
  ~Server() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  ScrapeTarget target() const { return {"127.0.0.1", std::to_string(port_), "/metrics"}; }
  // Until it was asked once more than it has answers: what was answered has been kept then.
  void wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return asked_ > answers_.size(); });
  }

 private:
  void work() {
    for (;;) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) return;
      char request[4096];
      (void)::recv(client, request, sizeof request, 0);
      std::unique_lock lock(mutex_);
      if (asked_ < answers_.size()) (void)::send(client, answers_[asked_].data(), answers_[asked_].size(), MSG_NOSIGNAL);
      ++asked_;
      lock.unlock();
      done_.notify_all();
      ::close(client);
    }
  }

  std::vector<std::string> answers_;
  std::size_t asked_ = 0;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable done_;
  std::thread thread_;
};

class Scrape : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "llmprof_scrape_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The rows that the file makes, as "name{labels} value kind unit".
  std::vector<std::string> rows() {
    auto writer = trace::RunWriter::create(folder_ + "/x.llmprof");
    trace::Id next_id = 5;
    ingest_metrics(folder_, *writer, next_id, ledger_);
    ledger_.write(*writer, next_id);
    EXPECT_TRUE(writer->finish({.environment = "{}"}));
    const auto run = trace::Run::open(folder_ + "/x");
    const auto losses = run->query("SELECT name, sum(count)::BIGINT FROM loss GROUP BY name");
    for (const auto& row : losses->rows) lost_[row[0].text] = row[1].as_int();
    const auto table = run->query("SELECT name, coalesce(labels, ''), value, kind, coalesce(unit, '-'), ts_ns FROM metric ORDER BY id");
    std::vector<std::string> out;
    for (const auto& row : table->rows) {
      out.push_back(row[0].text + "{" + row[1].text + "} " + std::to_string(row[2].as_int()) + " " + row[3].text + " " + row[4].text);
      times_.push_back(row[5].as_int());
    }
    return out;
  }
  std::int64_t lost(const std::string& name) { return lost_[name]; }
  std::string folder_;
  Ledger ledger_;
  std::map<std::string, std::int64_t> lost_;
  std::vector<std::int64_t> times_;
};

TEST_F(Scrape, EverySeriesOfEveryScrapeIsARow) {
  const std::string first =
      "# TYPE vllm:prompt_tokens counter\nvllm:prompt_tokens_total{engine=\"0\"} 10\n# TYPE vllm:num_requests_running gauge\n"
      "vllm:num_requests_running 2\nnonsense here\nvllm:nothing NaN\n";
  const std::string second = "vllm:prompt_tokens_total{engine=\"0\"} 10\nvllm:num_requests_running 3\n";
  Server server({"HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(first.size()) + "\r\n\r\n" + first,
                 "HTTP/1.1 500 Oh\r\n\r\n",
                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + [&] {
                   char size[16];
                   std::snprintf(size, sizeof size, "%zx\r\n", second.size());
                   return size + second + "\r\n0\r\n\r\n";
                 }(),
                 "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut"});
  CaptureInfo info;
  {
    Scraper scraper({server.target(), std::chrono::milliseconds(1)}, folder_);
    scraper.start();
    server.wait();
    scraper.finish(info);
  }
  EXPECT_EQ(rows(), (std::vector<std::string>{"vllm:prompt_tokens_total{engine=\"0\"} 10 counter tokens",
                                              "vllm:num_requests_running{} 2 gauge -",
                                              "vllm:prompt_tokens_total{engine=\"0\"} 10 counter tokens",
                                              "vllm:num_requests_running{} 3 gauge -"}));
  EXPECT_LT(times_.front(), times_.back());
  EXPECT_EQ(lost("input_damaged"), 1);  // the line of nonsense
  EXPECT_EQ(lost("input_ignored"), 1);  // the NaN
  ASSERT_EQ(info.losses.size(), 1u);
  EXPECT_EQ(info.losses[0].name, trace::Loss::kScrapeFailed);
  EXPECT_GE(info.losses[0].count, 2);  // status 500 and the one that was cut, and perhaps one without an answer
}

TEST_F(Scrape, AServerThatNeverAnswersIsALoss) {
  CaptureInfo info;
  Scraper scraper({{"127.0.0.1", "1", "/metrics"}, std::chrono::milliseconds(1)}, folder_);
  scraper.start();
  scraper.finish(info);
  ASSERT_EQ(info.losses.size(), 1u);
  EXPECT_NE(info.losses[0].detail.find("never answered"), std::string::npos);
}

TEST_F(Scrape, AFileThatIsCutGivesItsWholeScrapes) {
  std::ofstream(folder_ + "/" + kMetricsFile) << "#scraped 100 4\nx 1\n\n#scraped 200 4\nx 2\n\n#scraped 300 9\nx 3";
  EXPECT_EQ(rows(), (std::vector<std::string>{"x{} 1 untyped -", "x{} 2 untyped -"}));
  EXPECT_EQ(times_, (std::vector<std::int64_t>{100, 200}));
}

}  // namespace
}  // namespace llmprof::record
