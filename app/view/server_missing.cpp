// Instead of server.cpp, where cpp-httplib was not found.

#include <dic/error.hpp>

#include "view/server.hpp"

namespace dic::app {

struct LocalServer::Impl {};

LocalServer::LocalServer(Handler) {
  throw Error(
      "This dic was built without cpp-httplib, which dic view needs: install it (Debian: libcpp-httplib-dev) "
      "and build again, or use dic report.");
}
LocalServer::~LocalServer() = default;
std::string LocalServer::address() const { return {}; }
void LocalServer::serve(const std::stop_token&) {}

}  // namespace dic::app
