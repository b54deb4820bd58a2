#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include "sandbox_posix.h"

#if !defined(_WIN32)

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void report_error(struct sandbox_report *report, enum protection protection, const char *what) {
  report_protection(report, protection, PROTECTION_MISSING, "%s: %s", what, strerror(errno));
}

bool is_descriptor_kept(const struct sandbox_limits *limits, int descriptor) {
  bool is_named = descriptor == limits->client_descriptor;
  for (size_t i = 0; i < limits->descriptor_count; i++) {
    is_named = is_named || descriptor == limits->descriptors[i];
  }
  return is_named || descriptor == STDOUT_FILENO || descriptor == STDERR_FILENO;
}

void redirect_standard_descriptors(const struct sandbox_limits *limits, struct sandbox_report *report) {
  int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int descriptor = 0; nowhere >= 0 && descriptor <= STDERR_FILENO; descriptor++) {
    if (!is_descriptor_kept(limits, descriptor) || fcntl(descriptor, F_GETFD) < 0 || isatty(descriptor)) {
      dup2(nowhere, descriptor);
    }
  }
  if (nowhere >= 0) {
    report_protection(report, SANDBOX_DESCRIPTORS, PROTECTION_ACTIVE, "%s", "");
  } else {
    report_error(report, SANDBOX_DESCRIPTORS, "/dev/null");
  }
}

void start_session(struct sandbox_report *report) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (setsid() >= 0) {
    report_protection(report, SANDBOX_SESSION, PROTECTION_ACTIVE, "%s", "");
  } else {
    report_error(report, SANDBOX_SESSION, "setsid");
  }
}

bool lower_limit(int resource, uint64_t value) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) != 0) {
    return false;
  }
  if (value != UINT64_MAX && (rlim_t)value < limit.rlim_cur) {
    limit.rlim_cur = (rlim_t)value;
  }
  limit.rlim_max = limit.rlim_cur;
  return setrlimit(resource, &limit) == 0;
}

void limit_resource(int resource, uint64_t value, enum protection protection, struct sandbox_report *report) {
  if (value == UINT64_MAX) {
    report_protection(report, protection, PROTECTION_OFF, "no limit is asked for");
  } else if (lower_limit(resource, value)) {
    report_protection(report, protection, PROTECTION_ACTIVE, "%llu", (unsigned long long)value);
  } else {
    report_error(report, protection, "setrlimit");
  }
}

void limit_files(const struct sandbox_limits *limits, struct sandbox_report *report) {
  signal(SIGXFSZ, SIG_IGN); /* to write more is an error of the call, not the end of the process */
  limit_resource(RLIMIT_FSIZE, limits->file_size, SANDBOX_FILE_SIZE, report);
  limit_resource(RLIMIT_NOFILE, limits->files, SANDBOX_FILES, report);
  limit_resource(RLIMIT_CORE, 0, SANDBOX_CORE, report);
}

void end_like(int status) {
  if (WIFSIGNALED(status)) {
    sigset_t none;
    signal(WTERMSIG(status), SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    raise(WTERMSIG(status));
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

#endif
