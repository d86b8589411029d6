#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

namespace dic::app {

/// A connection of a browser, or of anybody who can reach the port.
struct Client {
  int socket = -1;
  std::string received;                       ///< bytes of requests that were not answered yet
  std::string to_send;                        ///< the answer
  std::size_t sent = 0;                       ///< bytes of the answer that were sent
  bool is_trusted = false;                    ///< true once a request with the secret path has come
  bool stays = true;                          ///< false: is closed after the answer
  std::chrono::steady_clock::time_point due;  ///< is closed if its present step is not done by then
};

/// The connections of a server. One thread waits for all of them: it collects heads of requests and sends
/// answers, so that a client who is slow, or who never reads, keeps no other thread busy. Every step has a
/// deadline. Where too many are connected, those who have not shown the secret path go first, the oldest
/// before the others. A few threads answer those who have shown it; a refusal is made at once.
class Clients {
 public:
  /// Puts the answer into `to_send` and takes the request from `received`. What is still missing of a body it
  /// reads from the socket, but waits only for clients that are trusted.
  using Answer = std::function<void(Client&)>;
  /// True for the head of a request that has the secret path.
  using Trusts = std::function<bool(const std::string& head)>;

  /// at_once: most answers that are made at the same time; fewer if the system starts fewer threads. A thread
  /// starts when there is a request for it. Throws Error if the system starts no two threads.
  Clients(Answer answer, Trusts trusts, int at_once);
  /// Closes all connections, also those that are being answered, and waits for the threads.
  ~Clients();
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  /// Takes over a connected socket.
  void add(int socket);

 private:
  using Clock = std::chrono::steady_clock;

  void end();
  void start_thread();
  void make_answers();
  void watch();
  void take_arrived();
  void make_room();
  /// Does what a client's socket is ready for. False if the client is gone or was handed to another thread.
  bool advance(Client& client, short events);
  bool receive(Client& client);
  bool send(Client& client);
  static void say_goodbye(Client& client);
  bool answer_head(Client& client);
  void wake() const;

  Answer answer_;
  Trusts trusts_;
  int at_once_;
  int wake_[2] = {-1, -1};       ///< a pipe that ends the waiting of `watch`
  std::vector<Client> waiting_;  ///< of the watching thread, the oldest first

  std::mutex mutex_;  ///< guards the members below
  std::condition_variable has_requests_;
  std::vector<Client> arrived_;
  std::deque<Client> requests_;
  std::unordered_set<int> answering_;  ///< sockets
  bool is_over_ = false;

  std::vector<std::jthread> threads_;
  std::jthread watcher_;
};

}  // namespace dic::app
