#pragma once

#include <sys/socket.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dic::live {

/// Sends lines of text by UDP, one packet each, and to all programs that are connected by TCP. Never waits:
/// a program that does not read in time loses its connection.
class LineSender {
 public:
  /// udp: "HOST:PORT", empty = none. tcp: port to listen on; 0 = any free one. Throws UsageError for a host
  /// that is unknown, or a port that is taken.
  LineSender(const std::string& udp, std::optional<int> tcp);
  ~LineSender();
  LineSender(const LineSender&) = delete;
  LineSender& operator=(const LineSender&) = delete;

  /// Port on which programs connect; 0 = none.
  int tcp_port() const;
  /// Sends a line, which ends with a line break.
  void send(const std::string& line);
  /// Number of programs that lost their connection because they did not read in time.
  int cut_off() const { return cut_off_; }

 private:
  struct Client {
    int socket = -1;
    std::string waiting;  ///< bytes that the connection has not taken yet
  };

  void accept_clients();
  bool send_to(Client& client, const std::string& line);

  int udp_ = -1, listener_ = -1;
  std::vector<Client> clients_;
  std::string first_line_;  ///< given to every program that connects
  int cut_off_ = 0;
};

}  // namespace dic::live
