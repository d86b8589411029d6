#include "live/line_sender.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <dic/error.hpp>
#include <memory>

namespace dic::live {
namespace {

/// Bytes that may wait for a program that reads slowly.
constexpr std::size_t kMostWaiting = std::size_t{1} << 22;

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

int connected_udp(const std::string& target) {
  const std::size_t colon = target.rfind(':');
  const std::string host = target.substr(0, colon),
                    port = colon == std::string::npos ? "" : target.substr(colon + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (host.empty() || port.empty() || getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0)
    throw UsageError("Lines cannot be sent by UDP to \"" + target + "\": give HOST:PORT, as 127.0.0.1:5005.");
  const Addresses addresses(found, freeaddrinfo);
  const int made = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0 || connect(made, found->ai_addr, found->ai_addrlen) != 0) {
    const std::string why = std::strerror(errno);
    if (made >= 0) close(made);
    throw UsageError("Lines cannot be sent by UDP to \"" + target + "\" (" + why + ").");
  }
  return made;
}

int listening_tcp(int port) {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  if (made >= 0 && bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      listen(made, 8) == 0)
    return made;
  const std::string why = std::strerror(errno);
  if (made >= 0) close(made);
  throw UsageError("Programs cannot connect on port " + std::to_string(port) + " (" + why +
                   "): choose another port.");
}

}  // namespace

LineSender::LineSender(const std::string& udp, std::optional<int> tcp) {
  if (tcp) listener_ = listening_tcp(*tcp);
  try {
    if (!udp.empty()) udp_ = connected_udp(udp);
  } catch (...) {
    if (listener_ >= 0) close(listener_);
    throw;
  }
}

LineSender::~LineSender() {
  for (const Client& client : clients_) close(client.socket);
  for (const int socket : {udp_, listener_})
    if (socket >= 0) close(socket);
}

int LineSender::tcp_port() const {
  if (listener_ < 0) return 0;
  sockaddr_in address{};
  socklen_t bytes = sizeof address;
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &bytes);
  return ntohs(address.sin_port);
}

void LineSender::send(const std::string& line) {
  if (first_line_.empty()) first_line_ = line;
  if (udp_ >= 0) static_cast<void>(::send(udp_, line.data(), line.size(), MSG_NOSIGNAL));
  if (listener_ < 0) return;
  std::erase_if(clients_, [&](Client& client) {
    const bool is_gone = !send_to(client, line);
    if (is_gone) close(client.socket);
    return is_gone;
  });
  accept_clients();
}

void LineSender::accept_clients() {
  for (int made = -1; (made = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
    const int yes = 1;
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);  // a line must not wait for the next one
    Client client{made, {}};
    if (send_to(client, first_line_))
      clients_.push_back(std::move(client));
    else
      close(made);
  }
}

/// Returns false if the connection has ended, or too much waits for it.
bool LineSender::send_to(Client& client, const std::string& line) {
  if (client.waiting.size() + line.size() > kMostWaiting) {
    ++cut_off_;
    return false;
  }
  client.waiting += line;
  while (!client.waiting.empty()) {
    const ssize_t sent =
        ::send(client.socket, client.waiting.data(), client.waiting.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    client.waiting.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace dic::live
