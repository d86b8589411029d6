#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace dic::app {

/// A request of a page whose right to ask was checked.
struct PageRequest {
  std::string method;  ///< "GET" or "POST"
  std::string path;    ///< behind the token: "", "web/main.js", "api/field/u/3"
  std::string body;    ///< body of a POST: JSON
};

struct PageAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// A server for the pages of one user on this machine: it listens on the loopback address only, on a port
/// that the system chooses, and answers nobody who does not know the random token in the address. Other
/// programs' pages are refused by Host and Origin, so that neither a name that leads to the loopback address
/// nor a form of another site gets through.
class LocalServer {
 public:
  using Handler = std::function<PageAnswer(const PageRequest&)>;

  /// Calls of the handler may overlap. Throws Error where no port can be had, or where the program was built
  /// without the library for it.
  explicit LocalServer(Handler handler);
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  /// Address with the token: "http://127.0.0.1:40123/4f.../".
  std::string address() const;
  /// Answers until `stop` is requested.
  void serve(const std::stop_token& stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic::app
