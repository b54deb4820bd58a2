/*
 * The sandbox on macOS: limits on resources, a session of its own, closed descriptors. Files, network and other
 * processes are not kept from the code of an FMU there, and the report says so.
 */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include "sandbox_posix.h"

#if !defined(__linux__) && !defined(_WIN32) /* macOS, and POSIX without the means of Linux */

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_descriptors(const struct sandbox_limits *limits) {
  long most = sysconf(_SC_OPEN_MAX);
  for (int descriptor = STDERR_FILENO + 1; descriptor < (most > 0 && most < 65536 ? most : 65536); descriptor++) {
    if (!is_descriptor_kept(limits, descriptor)) {
      close(descriptor);
    }
  }
}

static pid_t supervised;

static void end_host(int number) {
  (void)number;
  kill(supervised, SIGKILL);
}

static void block_termination(bool is_blocked) {
  sigset_t termination;
  sigemptyset(&termination);
  sigaddset(&termination, SIGTERM);
  sigprocmask(is_blocked ? SIG_BLOCK : SIG_UNBLOCK, &termination, NULL);
}

/*
 * Waits for the host, looks ten times a second whether the client is there, and ends like the host. No system call binds
 * the host's life to that of this process: who wants to end it sends SIGTERM.
 */
static void supervise(pid_t host, int client_descriptor) {
  supervised = host;
  signal(SIGTERM, end_host);
  block_termination(false);
  struct pollfd client = {client_descriptor, 0, 0};
  int status = 0;
  for (int remaining = 20; waitpid(host, &status, WNOHANG) == 0;) {
    bool has_gone = poll(&client, client_descriptor < 0 ? 0 : 1, 100) > 0;
    if (has_gone) {
      usleep(100000);
      remaining--;
    }
    if (remaining == 0) {
      kill(host, SIGKILL);
    }
  }
  end_like(status);
}

int apply_sandbox(const struct sandbox_limits *limits, struct sandbox_report *report) {
  static const enum protection unknown[] = {
      SANDBOX_PROCESSES_HIDDEN, SANDBOX_NETWORK,          SANDBOX_ROOT,        SANDBOX_SCRATCH_SIZE,
      SANDBOX_MEMORY,           SANDBOX_LANDLOCK_FILES,   SANDBOX_SYSTEM_CALLS, SANDBOX_NO_NEW_PROCESSES};
  memset(report, 0, sizeof *report);
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    report_protection(report, unknown[i], PROTECTION_MISSING, "macOS");
  }
  redirect_standard_descriptors(limits, report);
  close_descriptors(limits);
  block_termination(true); /* until there is a host to be ended; in the host start_session allows it again */
  pid_t host = fork();
  if (host < 0) {
    return -1;
  }
  if (host > 0) {
    supervise(host, limits->client_descriptor);
  }
  if (limits->client_descriptor >= 0) {
    close(limits->client_descriptor);
  }
  start_session(report);
  limit_files(limits, report);
  if (limits->scratch && chdir(limits->scratch) != 0) {
    report_error(report, SANDBOX_SCRATCH_SIZE, limits->scratch);
  }
  return are_required_active(limits, report) ? 0 : -1;
}

#endif
