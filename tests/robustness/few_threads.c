/* A preloaded library that lets the system start at most DIC_TEST_THREADS threads. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef int Create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  static atomic_int started;
  if (atomic_fetch_add(&started, 1) >= atoi(getenv("DIC_TEST_THREADS"))) return EAGAIN;
  return ((Create*)dlsym(RTLD_NEXT, "pthread_create"))(thread, attributes, start, argument);
}
