/* Landlock: which files a process may reach (https://docs.kernel.org/userspace-api/landlock.html), without privileges. */
#define _GNU_SOURCE
#include "sandbox_linux.h"

#if defined(__linux__)

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From linux/landlock.h, of which compilers' copies are often older than the kernel. */
enum {
  CALL_CREATE_RULESET = 444,
  CALL_ADD_RULE = 445,
  CALL_RESTRICT_SELF = 446,
  CREATE_RULESET_VERSION = 1,
  RULE_PATH_BENEATH = 1,
  LOG_SAME_EXEC_OFF = 1 /* from version 7: an FMU does not fill the system's log with what it is refused */
};

static const uint64_t EXECUTE = 1, WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_DIR = 1 << 3;
static const uint64_t MAKE_CHAR = 1 << 6, MAKE_SOCK = 1 << 9, MAKE_BLOCK = 1 << 11;
static const uint64_t REFER = 1 << 13, TRUNCATE = 1 << 14, IOCTL_DEV = 1 << 15; /* from versions 2, 3 and 5 */
static const uint64_t FIRST_VERSION = (1 << 13) - 1;
static const uint64_t ALL_TCP = 3;                         /* bind, connect: from version 4 */
static const uint64_t ALL_SCOPES = 3;                      /* abstract sockets, signals: from version 6 */

struct ruleset {
  uint64_t files, network, scopes;
};

struct rule {
  uint64_t rights;
  int32_t descriptor;
} __attribute__((packed));

static void add_rule(int ruleset, const struct allowed_path *allowed, uint64_t rights) {
  struct stat status;
  int descriptor = open(allowed->path, O_PATH | O_CLOEXEC);
  if (descriptor < 0) {
    return; /* not every system has all paths of the list */
  }
  if (fstat(descriptor, &status) == 0) {
    if (!S_ISDIR(status.st_mode)) {
      rights &= EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE; /* others are an error for a file */
    }
    struct rule rule = {rights, descriptor};
    syscall(CALL_ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0);
  }
  close(descriptor);
}

static int restrict_self(const struct ruleset *attributes, long version, const struct allowed_path *paths,
                         size_t count, bool has_sockets) {
  const uint64_t reading = EXECUTE | READ_FILE | READ_DIR;
  const uint64_t writing = attributes->files & ~(IOCTL_DEV | MAKE_CHAR | MAKE_BLOCK | (has_sockets ? 0 : MAKE_SOCK));
  const uint64_t device = (READ_FILE | WRITE_FILE | TRUNCATE) & attributes->files;
  size_t size = version < 4 ? 8 : version < 6 ? 16 : sizeof *attributes;
  int ruleset = (int)syscall(CALL_CREATE_RULESET, attributes, size, 0);
  if (ruleset < 0) {
    return -1;
  }
  for (size_t i = 0; i < count; i++) {
    enum path_access access = paths[i].access;
    add_rule(ruleset, &paths[i], access == MAY_READ ? reading : access == MAY_WRITE ? writing : device);
  }
  long result = syscall(CALL_RESTRICT_SELF, ruleset, version < 7 ? 0 : LOG_SAME_EXEC_OFF);
  int problem = errno;
  close(ruleset);
  errno = problem;
  return (int)result;
}

void restrict_by_landlock(const struct sandbox_limits *limits, const struct allowed_path *paths, size_t count,
                          struct sandbox_report *report) {
  long version = syscall(CALL_CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);
  struct ruleset attributes = {FIRST_VERSION, 0, 0};
  if (version < 1) {
    for (int protection = SANDBOX_LANDLOCK_FILES; protection <= SANDBOX_LANDLOCK_SCOPE; protection++) {
      report_error(report, (enum protection)protection, "Landlock");
    }
    return;
  }
  attributes.files |= (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0) | (version >= 5 ? IOCTL_DEV : 0);
  attributes.network = version >= 4 && !limits->network ? ALL_TCP : 0;
  attributes.scopes = version >= 6 ? (limits->network ? ALL_SCOPES & ~UINT64_C(1) : ALL_SCOPES) : 0;
  if (restrict_self(&attributes, version, paths, count, limits->network || limits->local_sockets) < 0) {
    for (int protection = SANDBOX_LANDLOCK_FILES; protection <= SANDBOX_LANDLOCK_SCOPE; protection++) {
      report_error(report, (enum protection)protection, "Landlock");
    }
    return;
  }
  const struct {
    enum protection protection;
    long since;
    bool asked;
    const char *missing;
  } parts[] = {
      {SANDBOX_LANDLOCK_FILES, 3, true, "files can be emptied before Linux 6.2"},
      {SANDBOX_LANDLOCK_DEVICES, 5, true, "needs Linux 6.10"},
      {SANDBOX_LANDLOCK_NETWORK, 4, !limits->network, "needs Linux 6.7"},
      {SANDBOX_LANDLOCK_SCOPE, 6, true, "needs Linux 6.12"},
  };
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (!parts[i].asked) {
      report_protection(report, parts[i].protection, PROTECTION_OFF, "--network");
    } else if (version >= parts[i].since) {
      report_protection(report, parts[i].protection, PROTECTION_ACTIVE, "Landlock, version %ld", version);
    } else {
      report_protection(report, parts[i].protection, PROTECTION_MISSING, "%s", parts[i].missing);
    }
  }
}

#endif
