/*
 * What copies of the host (copies.h) need of the sandbox: a process that waits for whichever of them works, and leave to
 * be made. A filter cannot tell the host from the code of the FMU. It has the kernel ask the process outside about each
 * new process, and that one allows so many at a time, of so much memory each, whoever wants them.
 */
#define _GNU_SOURCE
#include "sandbox_linux.h"

#if defined(__linux__)

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct keeper keeper;

const struct keeper *find_keeper(void) { return keeper.active == NULL ? NULL : &keeper; }

void start_keeper(void) {
  void *page = mmap(NULL, sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int status = 0;
  pid_t self = getpid();
  pid_t host = page == MAP_FAILED ? -1 : fork();
  if (host < 0) {
    return; /* then there are no copies */
  }
  keeper = (struct keeper){self, page};
  if (host == 0) {
    end_with_parent(self);
    return;
  }
  *keeper.active = host;
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  be_harmless();
  for (;;) {
    pid_t ended = waitpid(-1, &status, 0);
    if (ended == *keeper.active || (ended < 0 && errno != EINTR)) {
      end_like(status);
    }
  }
}

#if defined(__x86_64__) || defined(__aarch64__)

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

/* From linux/seccomp.h (Linux 5.5), of which compilers' copies are often older than the kernel. */
struct notification {
  uint64_t id;
  uint32_t pid, flags;
  struct seccomp_data data;
};
struct decision {
  uint64_t id;
  int64_t value;
  int32_t error;
  uint32_t flags;
};
enum { SET_FILTER = 1, SPEC_ALLOW = 4, NEW_LISTENER = 8, CONTINUE = 1 };
static const uint32_t ASK = 0x7FC00000; /* SECCOMP_RET_USER_NOTIF */
static const uint32_t OF_FORK = 0xFF | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;

#if defined(__x86_64__)
static const uint32_t ARCHITECTURE = AUDIT_ARCH_X86_64, FORK = __NR_fork;
#else
static const uint32_t ARCHITECTURE = AUDIT_ARCH_AARCH64, FORK = UINT32_MAX;
#endif

static int sockets[2] = {-1, -1}; /* the listener goes from the second to the first, outside */

void prepare_copies(const struct sandbox_limits *limits) {
  bool is_asked = !limits->no_restrictions && limits->processes == 0; /* else new processes are allowed anyway */
  if (limits->copies > 0 && is_asked &&
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    sockets[0] = sockets[1] = -1;
  }
}

union control {
  struct cmsghdr head;
  char bytes[CMSG_SPACE(sizeof(int))];
};

static bool send_listener(int listener) {
  char byte = 0;
  struct iovec content = {&byte, 1};
  union control control;
  struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1};
  memset(&control, 0, sizeof control);
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  control.head.cmsg_level = SOL_SOCKET;
  control.head.cmsg_type = SCM_RIGHTS;
  control.head.cmsg_len = CMSG_LEN(sizeof listener);
  memcpy(CMSG_DATA(&control.head), &listener, sizeof listener);
  return sendmsg(sockets[1], &message, MSG_NOSIGNAL) == 1;
}

int receive_listener(void) {
  char byte;
  int listener = -1;
  struct iovec content = {&byte, 1};
  union control control;
  struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1};
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  close(sockets[1]); /* the host's: when it has gone, there is nothing to wait for */
  if (sockets[0] >= 0 && recvmsg(sockets[0], &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message) != NULL) {
    memcpy(&listener, CMSG_DATA(&control.head), sizeof listener);
  }
  return listener;
}

bool ask_about_copies(void) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 0, 7), /* others: the next filter ends the process */
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FORK, 7, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)), /* the flags */
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, ~OF_FORK, 0, 3),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, ASK),
  };
  struct sock_fprog program = {(unsigned short)(sizeof steps / sizeof *steps), steps};
  long listener = -1;
  if (sockets[1] >= 0 && keeper.active != NULL) {
    listener = syscall(__NR_seccomp, SET_FILTER, NEW_LISTENER | SPEC_ALLOW, &program);
  }
  bool is_sent = listener >= 0 && send_listener((int)listener);
  if (listener >= 0) {
    close((int)listener);
  }
  close(sockets[0]);
  close(sockets[1]);
  return is_sent;
}

static bool read_process_file(pid_t process, const char *format, char *text, size_t size) {
  char path[64];
  snprintf(path, sizeof path, format, (long)process, (long)process);
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = descriptor < 0 ? -1 : read(descriptor, text, size - 1);
  if (descriptor >= 0) {
    close(descriptor);
  }
  text[length > 0 ? length : 0] = '\0';
  return length >= 0;
}

/* The processes below this one; many more than there may be where that cannot be read. */
static int count_below(pid_t process) {
  char text[256];
  if (!read_process_file(process, "/proc/%ld/task/%ld/children", text, sizeof text)) {
    return 2 * MAX_COPIES;
  }
  int count = 0;
  char *end = text;
  for (long child = strtol(text, &end, 10); child > 0 && count <= MAX_COPIES; child = strtol(end, &end, 10)) {
    count += 1 + count_below((pid_t)child);
  }
  return count;
}

/* Bounds the memory of the process from now on; false where it has more already, or has more than one thread. */
static bool is_fit(pid_t process, uint64_t bytes) {
  char text[4096];
  const struct rlimit limit = {(rlim_t)bytes, (rlim_t)bytes};
  if (!read_process_file(process, "/proc/%ld/status", text, sizeof text) || !strstr(text, "\nThreads:\t1\n") ||
      prlimit(process, RLIMIT_AS, &limit, NULL) != 0 ||
      !read_process_file(process, "/proc/%ld/statm", text, sizeof text)) {
    return false;
  }
  return strtoull(text, NULL, 10) <= bytes / (uint64_t)sysconf(_SC_PAGESIZE);
}

void decide_about_copy(int listener, pid_t above, uint64_t bytes) {
  struct notification asked;
  memset(&asked, 0, sizeof asked);
  if (ioctl(listener, _IOWR('!', 0, struct notification), &asked) != 0) {
    return; /* the one that asked has ended */
  }
  struct decision decision = {asked.id, 0, -EPERM, 0};
  pid_t maker = (pid_t)asked.pid;
  int before = count_below(maker);
  if (count_below(above) < MAX_COPIES && is_fit(maker, bytes)) {
    decision.error = 0;
    decision.flags = CONTINUE;
  }
  if (ioctl(listener, _IOWR('!', 1, struct decision), &decision) == 0 && decision.error == 0) {
    for (int attempt = 0; attempt < 1000 && count_below(maker) == before; attempt++) {
      usleep(10); /* until it is there, so that none who asks meanwhile is allowed in its place */
    }
  }
}

#else

void prepare_copies(const struct sandbox_limits *limits) { (void)limits; }
int receive_listener(void) { return -1; }
bool ask_about_copies(void) { return false; }
void decide_about_copy(int listener, pid_t above, uint64_t bytes) { (void)listener, (void)above, (void)bytes; }

#endif

#endif
