#include <dic/kernels/peer.hpp>
#include <string>

#include "common/check.hpp"

namespace dic::kernels {

bool allow_peer_access(int other) {
  int self = 0, possible = 0;
  check(cudaGetDevice(&self), "Reading the current device");
  check(cudaDeviceCanAccessPeer(&possible, self, other),
        "Asking for access to cuda:" + std::to_string(other));
  if (!possible) return false;
  const cudaError_t code = cudaDeviceEnablePeerAccess(other, 0);
  if (code == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();  // another object of this process has enabled it
  else
    check(code, "Access to cuda:" + std::to_string(other));
  return true;
}

void copy_between(void* to, const void* from, std::size_t bytes, StreamHandle stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
        "Copying " + std::to_string(bytes) + " bytes between devices");
}

}  // namespace dic::kernels
