#include "view/server.hpp"

#include <httplib.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <dic/error.hpp>
#include <functional>
#include <mutex>
#include <random>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace dic::app {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr std::size_t kLargestBody = 4 << 20;  ///< settings with a region of thousands of corners
/// A browser holds six connections per page open.
constexpr int kThreads = 16;

/// 128 random bits of the system, as hexadecimal digits.
std::string random_token() {
  std::random_device system;
  std::string token;
  for (int word = 0; word < 4; ++word) {
    std::array<char, 9> digits{};
    std::snprintf(digits.data(), digits.size(), "%08x", static_cast<std::uint32_t>(system()));
    token += digits.data();
  }
  return token;
}

/// Takes the same time whatever differs.
bool same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) different |= static_cast<unsigned char>(a[i] ^ b[i]);
  return different == 0;
}

/// The threads that answer. Where the system starts fewer, these have to do; that of the library ends the
/// program then.
class AnsweringThreads final : public httplib::TaskQueue {
 public:
  explicit AnsweringThreads(int count) {
    try {
      while (std::ssize(threads_) < count) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;
    }
  }

  using Accepted = decltype(std::declval<httplib::TaskQueue&>().enqueue(nullptr));  // bool in later versions
  Accepted enqueue(std::function<void()> task) override {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
    return static_cast<Accepted>(true);
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    wake_.notify_all();
    threads_.clear();  // waits for them
  }

 private:
  void work() {
    for (std::unique_lock lock(mutex_);;) {
      wake_.wait(lock, [&] { return is_over_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool is_over_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace

struct LocalServer::Impl {
  Handler handler;
  std::string token = random_token(), prefix = "/" + token + "/";
  int port = 0;
  httplib::Server server;

  explicit Impl(Handler h) : handler(std::move(h)) {
    server.new_task_queue = [] { return new AnsweringThreads(kThreads); };
    server.set_payload_max_length(kLargestBody);
    server.set_keep_alive_timeout(2);
    server.set_tcp_nodelay(true);
    // By default the library lets several programs listen on one port.
    server.set_socket_options([](auto) {});
    server.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      const int status = refusal(request);
      if (status == 0) return httplib::Server::HandlerResponse::Unhandled;
      response.status = status;
      response.set_content("Refused.\n", "text/plain");
      return httplib::Server::HandlerResponse::Handled;
    });
    const auto answer = [this](const httplib::Request& request, httplib::Response& response) {
      write(handler({request.method, request.path.substr(prefix.size()), request.body}), response);
    };
    server.Get(".*", answer);
    server.Post(".*", answer);
    port = server.bind_to_any_port(kLoopback);
    if (port <= 0) throw Error("No port of this machine's loopback address is free.");
  }

  /// Status of the refusal, 0 for none.
  int refusal(const httplib::Request& request) const {
    const std::string own = std::string(kLoopback) + ":" + std::to_string(port);
    if (request.get_header_value_count("Host") != 1 || request.get_header_value("Host") != own) return 403;
    const bool names_origin = request.has_header("Origin");
    if (names_origin && request.get_header_value("Origin") != "http://" + own) return 403;
    const std::string& path = request.path;
    if (path.size() < prefix.size() || !same(std::string_view(path).substr(0, prefix.size()), prefix))
      return 404;
    if (request.method == "GET") return 0;
    if (request.method != "POST") return 405;
    // A form of another site can post without Origin in old browsers, but not JSON.
    return names_origin && request.get_header_value("Content-Type") == "application/json" ? 0 : 403;
  }

  static void write(const PageAnswer& answer, httplib::Response& response) {
    response.status = answer.status;
    response.set_header("Cache-Control", "no-store");
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cross-Origin-Resource-Policy", "same-origin");
    for (const auto& [name, value] : answer.headers) response.set_header(name, value);
    response.set_content(answer.body, answer.type);
  }
};

LocalServer::LocalServer(Handler handler) : impl_(std::make_unique<Impl>(std::move(handler))) {}
LocalServer::~LocalServer() = default;

std::string LocalServer::address() const {
  return "http://" + std::string(kLoopback) + ":" + std::to_string(impl_->port) + impl_->prefix;
}

void LocalServer::serve(const std::stop_token& stop) {
  const std::stop_callback end(stop, [this] { impl_->server.stop(); });
  if (!stop.stop_requested()) impl_->server.listen_after_bind();
}

}  // namespace dic::app
