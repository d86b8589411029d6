/* A preloaded library in which call number DIC_TEST_AT of the function DIC_TEST_CALL (rename, remove, mkdir, link,
   symlink) on a path with DIC_TEST_PATH in it ends the process as kill -9 does or, with DIC_TEST_ERROR=1, fails with EIO. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* True if the call has to fail. */
static int is_broken(const char* call, const char* path) {
  static atomic_int calls;
  if (strcmp(getenv("DIC_TEST_CALL"), call) != 0 || strstr(path, getenv("DIC_TEST_PATH")) == NULL) return 0;
  if (atomic_fetch_add(&calls, 1) + 1 != atoi(getenv("DIC_TEST_AT"))) return 0;
  if (getenv("DIC_TEST_ERROR") == NULL) kill(getpid(), SIGKILL);
  errno = EIO;
  return 1;
}

int rename(const char* from, const char* to) {
  if (is_broken("rename", from)) return -1;
  return ((int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename"))(from, to);
}

int remove(const char* path) {
  if (is_broken("remove", path)) return -1;
  return ((int (*)(const char*))dlsym(RTLD_NEXT, "remove"))(path);
}

int mkdir(const char* path, mode_t mode) {
  if (is_broken("mkdir", path)) return -1;
  return ((int (*)(const char*, mode_t))dlsym(RTLD_NEXT, "mkdir"))(path, mode);
}

int link(const char* from, const char* to) {
  if (is_broken("link", to)) return -1;
  return ((int (*)(const char*, const char*))dlsym(RTLD_NEXT, "link"))(from, to);
}

int symlink(const char* target, const char* path) {
  if (is_broken("symlink", path)) return -1;
  return ((int (*)(const char*, const char*))dlsym(RTLD_NEXT, "symlink"))(target, path);
}
