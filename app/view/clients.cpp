#include "view/clients.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <dic/error.hpp>
#include <system_error>
#include <utility>

namespace dic::app {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostClients = 200;  ///< a process may have 1024 files open by default
constexpr std::size_t kLongestHead = 64 << 10;
constexpr auto kTimeForHead = 10s;      ///< from the connection to the end of the first head
constexpr auto kTimeForNext = 60s;      ///< from an answer to the end of the next head
constexpr auto kTimeForProgress = 10s;  ///< until a client takes some more of its answer
constexpr auto kTimeForGoodbye = 1s;    ///< in which what a client still sends is read and dropped
constexpr const char* kEndOfHead = "\r\n\r\n";

bool has_head(const Client& client) { return client.received.find(kEndOfHead) != std::string::npos; }

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Clients::Clients(Answer answer, Trusts trusts, int at_once)
    : answer_(std::move(answer)), trusts_(std::move(trusts)), at_once_(at_once) {
  if (pipe(wake_) != 0) throw Error("The system gives dic no more files: close other programs.");
  for (const int end : wake_) {
    fcntl(end, F_SETFD, FD_CLOEXEC);
    fcntl(end, F_SETFL, O_NONBLOCK);
  }
  try {
    threads_.emplace_back([this] { make_answers(); });
    watcher_ = std::jthread([this] { watch(); });
  } catch (const std::system_error&) {
    end();
    throw Error("The system starts no more threads for dic: close other programs.");
  }
}

Clients::~Clients() { end(); }

void Clients::end() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    for (const int socket : answering_) shutdown(socket, SHUT_RDWR);
  }
  has_requests_.notify_all();
  wake();
  if (watcher_.joinable()) watcher_.join();
  threads_.clear();  // waits for them
  for (const auto* clients : {&waiting_, &arrived_})
    for (const Client& client : *clients) close(client.socket);
  for (const Client& client : requests_) close(client.socket);
  for (const int end : wake_) close(end);
}

void Clients::wake() const {
  const char byte = 0;
  if (write(wake_[1], &byte, 1) != 1) return;  // the pipe is full: the watcher will wake up anyway
}

void Clients::add(int socket) {
  Client client;
  client.socket = socket;
  client.due = Clock::now() + kTimeForHead;
  {
    const std::lock_guard lock(mutex_);
    arrived_.push_back(std::move(client));
  }
  wake();
}

/// Adds a thread that makes answers, unless there are enough or the system starts no more: requests then
/// wait.
void Clients::start_thread() {
  if (std::ssize(threads_) >= at_once_) return;
  try {
    threads_.emplace_back([this] { make_answers(); });
  } catch (const std::system_error&) {
    at_once_ = static_cast<int>(threads_.size());
  }
}

void Clients::make_answers() {
  for (std::unique_lock lock(mutex_);;) {
    has_requests_.wait(lock, [&] { return is_over_ || !requests_.empty(); });
    if (is_over_) return;
    Client client = std::move(requests_.front());
    requests_.pop_front();
    answering_.insert(client.socket);
    lock.unlock();
    answer_(client);
    client.due = Clock::now() + kTimeForProgress;
    lock.lock();
    answering_.erase(client.socket);
    arrived_.push_back(std::move(client));
    wake();
  }
}

void Clients::watch() {
  for (;;) {
    take_arrived();
    make_room();
    std::vector<pollfd> sockets = {{wake_[0], POLLIN, 0}};
    auto next = Clock::now() + 1h;
    for (const Client& client : waiting_) {
      sockets.push_back({client.socket, static_cast<short>(client.to_send.empty() ? POLLIN : POLLOUT), 0});
      next = std::min(next, client.due);
    }
    {
      const std::lock_guard lock(mutex_);
      if (is_over_) return;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    poll(sockets.data(), sockets.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
    std::vector<Client> remain;
    for (std::size_t k = 0; k < waiting_.size(); ++k) {
      Client& client = waiting_[k];
      const short events = sockets[k + 1].revents;
      if (events != 0 && !advance(client, events)) continue;
      if (client.due <= Clock::now())
        close(client.socket);
      else
        remain.push_back(std::move(client));
    }
    waiting_ = std::move(remain);
  }
}

void Clients::take_arrived() {
  std::array<char, 64> bytes{};
  while (read(wake_[0], bytes.data(), bytes.size()) > 0) {
  }
  std::vector<Client> arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(arrived_);
  }
  for (Client& client : arrived) {
    if (!client.stays && client.to_send.empty()) say_goodbye(client);
    waiting_.push_back(std::move(client));
  }
}

void Clients::make_room() {
  while (waiting_.size() > kMostClients) {
    const auto stranger = std::ranges::find(waiting_, false, &Client::is_trusted);
    const auto leaving = stranger != waiting_.end() ? stranger : waiting_.begin();
    close(leaving->socket);
    waiting_.erase(leaving);
  }
}

bool Clients::advance(Client& client, short events) {
  return (events & POLLOUT) != 0 ? send(client) : receive(client);
}

bool Clients::receive(Client& client) {
  std::array<char, 16 << 10> bytes;
  const ssize_t count = recv(client.socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count < 0 && would_block()) return true;
  if (count > 0 && client.stays) client.received.append(bytes.data(), static_cast<std::size_t>(count));
  if (count > 0 && has_head(client)) return answer_head(client);
  if (count > 0 && client.received.size() <= kLongestHead) return true;
  close(client.socket);
  return false;
}

bool Clients::send(Client& client) {
  const ssize_t count = ::send(client.socket, client.to_send.data() + client.sent,
                               client.to_send.size() - client.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0 && would_block()) return true;
  if (count < 0) {
    close(client.socket);
    return false;
  }
  client.sent += static_cast<std::size_t>(count);
  client.due = Clock::now() + kTimeForProgress;
  if (client.sent < client.to_send.size()) return true;
  client.to_send.clear();
  client.sent = 0;
  client.due = Clock::now() + kTimeForNext;
  if (!client.stays) say_goodbye(client);
  return !has_head(client) || answer_head(client);  // the next request may have come with this one
}

/// Closing while a client still sends would take its answer from it.
void Clients::say_goodbye(Client& client) {
  shutdown(client.socket, SHUT_WR);
  client.received.clear();
  client.due = Clock::now() + kTimeForGoodbye;
}

/// True if the client stays with this thread, which then sends a refusal.
bool Clients::answer_head(Client& client) {
  client.is_trusted = client.is_trusted || trusts_(client.received);
  if (!client.is_trusted) {
    answer_(client);
    client.due = Clock::now() + kTimeForProgress;
    if (client.to_send.empty()) say_goodbye(client);
    return true;
  }
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(client));
    if (answering_.size() + requests_.size() > threads_.size()) start_thread();
  }
  has_requests_.notify_one();
  return false;
}

}  // namespace dic::app
