#include "view/server.hpp"

#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <dic/error.hpp>
#include <functional>
#include <memory>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

#include "view/clients.hpp"

namespace dic::app {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr std::size_t kLargestBody = 16 << 20;  ///< a table of loads; LARGEST in server_source.js is the same
constexpr std::size_t kLargestRequest = kLargestBody + (1 << 18);
constexpr int kThreads = 16;  ///< threads that make answers

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

/// Time in which the body of a request has to come.
constexpr auto kTimeForBody = std::chrono::seconds(10);

/// Runs what the library would give to threads at once: it only hands over a socket.
class AtOnce final : public httplib::TaskQueue {
 public:
  using Accepted = decltype(std::declval<httplib::TaskQueue&>().enqueue(nullptr));  // bool in later versions
  Accepted enqueue(std::function<void()> task) override {
    task();
    return static_cast<Accepted>(true);
  }
  void shutdown() override {}
};

/// The library reads the request of a client, and writes its answer into memory. Versions of the library
/// differ in what they ask a stream for.
class ClientStream final : public httplib::Stream {
 public:
  explicit ClientStream(Client& client)
      : client_(client),
        due_(std::chrono::steady_clock::now() + (client.is_trusted ? kTimeForBody : kTimeForBody.zero())) {}

  // Newer versions have more virtual functions: an override in one is none in another.
  // NOLINTBEGIN(modernize-use-override)
  bool is_readable() const { return wait_readable(); }
  bool is_writable() const { return true; }
  bool wait_writable() const { return true; }
  bool is_peer_alive() const { return true; }
  time_t duration() const { return 0; }
  bool wait_readable() const {
    if (!client_.received.empty()) return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_ - std::chrono::steady_clock::now());
    pollfd waits = {client_.socket, POLLIN, 0};
    return left.count() > 0 && poll(&waits, 1, static_cast<int>(left.count())) > 0;
  }
  ssize_t read(char* bytes, std::size_t size) {
    if (!wait_readable() || read_ > kLargestRequest) return -1;
    if (client_.received.empty()) {
      const ssize_t arrived = recv(client_.socket, bytes, size, MSG_DONTWAIT);
      read_ += arrived > 0 ? static_cast<std::size_t>(arrived) : 0;
      return arrived;
    }
    const std::size_t count = std::min(size, client_.received.size() - taken_);
    read_ += count;
    std::copy_n(client_.received.data() + taken_, count, bytes);
    taken_ += count;
    if (taken_ == client_.received.size()) take();
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* bytes, std::size_t size) {
    // "100 Continue": the client sends its body only then.
    if (client_.to_send.empty() && std::string_view(bytes, size).starts_with("HTTP/1.1 100"))
      return send(client_.socket, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    client_.to_send.append(bytes, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& number) const { get_local_ip_and_port(ip, number); }
  void get_local_ip_and_port(std::string& ip, int& number) const { ip = kLoopback, number = 0; }
  socket_t socket() const { return client_.socket; }
  // NOLINTEND(modernize-use-override)

  /// Leaves what follows the request to the client.
  void take() {
    client_.received.erase(0, taken_);
    taken_ = 0;
  }

 private:
  Client& client_;
  std::chrono::steady_clock::time_point due_;
  std::size_t taken_ = 0;  ///< bytes of `received` that were read
  std::size_t read_ = 0;   ///< bytes of the request that were read
};

/// The library accepts connections and understands requests; `clients` waits for them.
class HttpServer final : public httplib::Server {
 public:
  std::unique_ptr<Clients> clients;

  void answer(Client& client) {
    ClientStream stream(client);
    bool is_last = false;
    const bool was_answered = process(stream, is_last, [](httplib::Request&) {});
    stream.take();
    // Behind a refusal may lie a body that was not read.
    const std::string_view start = std::string_view(client.to_send).substr(0, 10);
    const bool is_refusal = start.size() < 10 || start[9] != '2';
    client.stays = was_answered && !is_last && !is_refusal;
    if (is_refusal && start.size() == 10 && client.to_send.find("\nConnection: close") == std::string::npos)
      client.to_send.insert(client.to_send.find('\n') + 1, "Connection: close\r\n");
  }

 private:
  bool process_and_close_socket(socket_t socket) override {
    clients->add(socket);
    return true;
  }

  template <typename Setup>
  bool process(httplib::Stream& stream, bool& is_last, const Setup& setup) {
    if constexpr (requires { this->process_request(stream, false, is_last, setup); })
      return this->process_request(stream, false, is_last, setup);
    else
      return this->process_request(stream, kLoopback, 0, kLoopback, 0, false, is_last, setup);
  }
};

}  // namespace

struct LocalServer::Impl {
  Handler handler;
  std::string token = random_token(), prefix = "/" + token + "/";
  int port = 0;
  HttpServer server;

  explicit Impl(Handler h) : handler(std::move(h)) {
    server.new_task_queue = [] { return new AtOnce; };
    server.set_payload_max_length(kLargestBody);
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

  /// True for a head whose first line asks for the secret path.
  bool knows_path(std::string_view head) const {
    const std::size_t at = head.find('/');
    return at != std::string_view::npos && same(head.substr(at, prefix.size()), prefix);
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
    if (request.has_header("Content-Encoding")) return 415;  // a few KB could become GB
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
  HttpServer& server = impl_->server;
  server.clients =
      std::make_unique<Clients>([&](Client& client) { server.answer(client); },
                                [&](const std::string& head) { return impl_->knows_path(head); }, kThreads);
  std::atomic<bool> has_ended = false;
  std::jthread listener([&] {
    server.listen_after_bind();
    has_ended = true;
  });
  {
    // The library forgets to stop what has not begun.
    const std::stop_callback end(stop, [&] {
      while (!server.is_running() && !has_ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      server.stop();
    });
    listener.join();
  }
  server.clients.reset();
}

}  // namespace dic::app
