/*
 * Copies of the host, on Linux.
 *
 *   keeper (sandbox_linux_copies.c) -- the host, which works -- its copy, which waits
 *
 * A copy waits at its end of a socket pair. A message there is the order to go on, the end of the pair without a message
 * that to end: so a copy never outlives the process that has made it. All of them share arena and pipes, and the one
 * that works alone reads and writes there.
 */
#define _GNU_SOURCE
#include "copies.h"

#include "fmi.h"

#if defined(__linux__)

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox_linux.h"

static pid_t waiting;       /* the copy */
static int to_waiting = -1; /* our end of the socket pair; -1: there is no copy */

/* Other threads would not be copied; other processes would talk to both. */
static bool is_alone(void) {
  int entries = 0;
  siginfo_t child;
  DIR *listing = opendir("/proc/self/task");
  for (struct dirent *entry = listing ? readdir(listing) : NULL; entry; entry = readdir(listing)) {
    entries += entry->d_name[0] != '.';
  }
  if (listing) {
    closedir(listing);
  }
  return entries == 1 && waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

static void drop_copy(void) {
  if (to_waiting >= 0) {
    close(to_waiting);
    to_waiting = -1;
    while (waitpid(waiting, NULL, 0) < 0 && errno == EINTR) {
    }
  }
}

static ssize_t receive(int from, void *bytes, size_t size) {
  ssize_t count;
  do {
    count = recv(from, bytes, size, MSG_WAITALL);
  } while (count < 0 && errno == EINTR);
  return count;
}

/* Returns when this copy is the one that works, and the process that has made it is no longer there. */
static void wait_as_copy(int from, pid_t maker, uint32_t *sequence) {
  uint32_t nothing;
  if (receive(from, sequence, sizeof *sequence) != (ssize_t)sizeof *sequence) {
    _exit(EXIT_SUCCESS);
  }
  receive(from, &nothing, sizeof nothing);
  close(from);
  while (kill(maker, 0) == 0) { /* until the keeper has taken note of its end: it counts */
    sched_yield();
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* refused where a namespace ends all */
  if (getppid() != find_keeper()->process) {
    _exit(EXIT_FAILURE);
  }
}

static int32_t make_copy(uint32_t *sequence) {
  drop_copy();
  if (find_keeper() == NULL || !is_alone()) {
    return HOST_NOT_COPIED;
  }
  int32_t if_failed = HOST_NOT_COPIED;
  for (;;) {
    int ends[2];
    pid_t maker = getpid();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return if_failed;
    }
    pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      wait_as_copy(ends[1], maker, sequence);
      if_failed = OK; /* it has been returned to, though not for a second time */
      continue;
    }
    close(ends[1]);
    if (child < 0) {
      close(ends[0]);
      return if_failed;
    }
    to_waiting = ends[0];
    waiting = child;
    return OK;
  }
}

static int32_t return_to_copy(const uint32_t *sequence) {
  if (to_waiting < 0) {
    return HOST_NOT_COPIED;
  }
  volatile pid_t *active = find_keeper()->active;
  *active = waiting;
  if (send(to_waiting, sequence, sizeof *sequence, MSG_NOSIGNAL) == (ssize_t)sizeof *sequence) {
    _exit(EXIT_SUCCESS);
  }
  *active = getpid();
  drop_copy();
  return HOST_NOT_COPIED;
}

int32_t copy_host(uint64_t request, uint32_t *sequence) {
  switch (request) {
    case MAKE_COPY:
      return make_copy(sequence);
    case RETURN_TO_COPY:
      return return_to_copy(sequence);
    case DROP_COPY:
      drop_copy();
      return OK;
    default:
      return HOST_MALFORMED;
  }
}

#else

int32_t copy_host(uint64_t request, uint32_t *sequence) {
  (void)sequence;
  return request > DROP_COPY ? HOST_MALFORMED : request == DROP_COPY ? OK : HOST_NOT_COPIED;
}

#endif
