/// Input: bytes sent to the server of dic view. Byte 1 stands for the secret path, byte 2 for the host.
#include "view/server.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>

#include "commands.hpp"
#include "memory_file.hpp"

namespace dic::app {

const std::string& command_line() {
  static const std::string none;
  return none;
}

namespace {

struct Running {
  LocalServer server{[](const PageRequest& request) {
    return PageAnswer{.body = "\"" + std::to_string(request.path.size() + request.body.size()) + "\""};
  }};
  std::string host = server.address().substr(7, server.address().find('/', 7) - 7);
  std::string path = server.address().substr(7 + host.size());
  std::jthread thread{[this](const std::stop_token& stop) { server.serve(stop); }};
};

std::string answer_to(const Running& running, const std::string& request) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(running.host.substr(running.host.find(':') + 1))));
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(connection >= 0 &&
          connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  send(connection, request.data(), request.size(), MSG_NOSIGNAL);
  shutdown(connection, SHUT_WR);
  std::string answer;
  std::array<char, 4096> bytes{};
  for (ssize_t n = 0; (n = recv(connection, bytes.data(), bytes.size(), 0)) > 0;)
    answer.append(bytes.data(), n);
  close(connection);
  return answer;
}

}  // namespace
}  // namespace dic::app

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static dic::app::Running running;
  bool knows_path = false;
  std::string request;
  for (std::size_t k = 0; k < size; ++k) {
    knows_path |= data[k] == 1;
    if (data[k] == 1)
      request += running.path;
    else if (data[k] == 2)
      request += running.host;
    else
      request += static_cast<char>(data[k]);
  }
  const std::string answer = dic::app::answer_to(running, request);
  dic::require(knows_path || !answer.starts_with("HTTP/1.1 200"));
  return 0;
}
