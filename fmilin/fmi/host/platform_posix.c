/* Linux and macOS. */
#ifndef _WIN32
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "platform.h"

static int requests = -1;
static int answers = -1;

void *open_library(const char *path, char *reason, size_t size) {
  const char *name = strrchr(path, '/');
  if (name != NULL && name != path) {
    char folder[PATH_MAX];
    size_t length = (size_t)(name - path);
    if (length < sizeof folder) {
      memcpy(folder, path, length);
      folder[length] = 0;
      if (chdir(folder) != 0) { /* some libraries look for others in the working directory, most do not */
        errno = 0;
      }
    }
  }
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char *text = dlerror();
    strncpy(reason, text == NULL ? "The system gives no reason." : text, size - 1);
    reason[size - 1] = 0;
  }
  return library;
}

void close_library(void *library) {
  dlclose(library);
}

function find_function(void *library, const char *name) {
  /* ISO C has no conversion from a pointer to an object to one to a function; POSIX promises that they are alike. */
  void *symbol = dlsym(library, name);
  function found;
  memcpy(&found, &symbol, sizeof found);
  return found;
}

static int descriptor(const char *text) {
  char *end;
  errno = 0;
  long number = strtol(text, &end, 10);
  return errno != 0 || end == text || *end != 0 || number < 3 || number > INT_MAX ? -1 : (int)number;
}

char *open_channel(const char *requests_text, const char *answers_text, const char *arena_text, size_t arena_size,
                   void (*report_crash)(uint32_t code)) {
  (void)report_crash; /* signals tell */
  requests = descriptor(requests_text);
  answers = descriptor(answers_text);
  int arena = descriptor(arena_text);
  if (requests < 0 || answers < 0 || arena < 0) {
    return NULL;
  }
  fcntl(requests, F_SETFD, FD_CLOEXEC);
  fcntl(answers, F_SETFD, FD_CLOEXEC);
  void *memory = mmap(NULL, arena_size, PROT_READ | PROT_WRITE, MAP_SHARED, arena, 0);
  close(arena);
  return memory == MAP_FAILED ? NULL : memory;
}

bool read_bytes(void *to, size_t size) {
  char *place = to;
  while (size > 0) {
    ssize_t count = read(requests, place, size);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return false;
    }
    place += count;
    size -= (size_t)count;
  }
  return true;
}

bool write_bytes(const void *from, size_t size) {
  const char *place = from;
  while (size > 0) {
    ssize_t count = write(answers, place, size);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return false;
    }
    place += count;
    size -= (size_t)count;
  }
  return true;
}

#else
typedef int nothing_here; /* ISO C does not allow an empty file */
#endif
