/*
 * Control groups, version 2 (https://docs.kernel.org/admin-guide/cgroup-v2.html), where one has been delegated to the
 * user: they count memory of the kernel, too, such as page tables and what waits in sockets.
 */
#define _GNU_SOURCE
#include "sandbox_linux.h"

#if defined(__linux__)

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

static const char MOUNT_POINT[] = "/sys/fs/cgroup", OURS[] = "fmilin-host-";
enum { CGROUP2_MAGIC = 0x63677270 };

static bool write_text(const char *folder, const char *name, const char *text) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
    return false;
  }
  int descriptor = open(path, O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return false;
  }
  bool is_written = write(descriptor, text, strlen(text)) == (ssize_t)strlen(text);
  int problem = errno;
  close(descriptor);
  errno = problem;
  return is_written;
}

static bool read_text(const char *path, char *text, size_t size) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return false;
  }
  ssize_t length = read(descriptor, text, size - 1);
  close(descriptor);
  text[length > 0 ? length : 0] = '\0';
  return length > 0;
}

/* The folder of the group in which this process is. */
static bool find_group(char *folder, size_t size) {
  char text[PATH_MAX];
  struct statfs status;
  if (statfs(MOUNT_POINT, &status) != 0 || status.f_type != CGROUP2_MAGIC) {
    return false;
  }
  if (!read_text("/proc/self/cgroup", text, sizeof text) || strncmp(text, "0::/", 4) != 0) {
    return false; /* a line of another kind: version 1 has the controllers */
  }
  text[strcspn(text, "\n")] = '\0';
  return snprintf(folder, size, "%s%s", MOUNT_POINT, text + 3) < (int)size;
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), end_length = strlen(end);
  return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Whether groups in this folder count memory and processes, and the folder is not one of systemd's own. */
static bool is_delegated(const char *folder) {
  char path[PATH_MAX], controllers[256];
  snprintf(path, sizeof path, "%s/cgroup.subtree_control", folder);
  return !ends_with(folder, ".slice") && !ends_with(folder, ".service") && strcmp(folder, MOUNT_POINT) != 0 &&
         read_text(path, controllers, sizeof controllers) && strstr(controllers, "memory") &&
         strstr(controllers, "pids") && access(folder, W_OK) == 0;
}

/* Groups that are left of hosts which were killed together with the process that waits for them. */
static void remove_old_groups(const char *parent) {
  DIR *listing = opendir(parent);
  for (struct dirent *entry = listing ? readdir(listing) : NULL; entry; entry = readdir(listing)) {
    char path[PATH_MAX];
    if (strncmp(entry->d_name, OURS, strlen(OURS)) == 0 &&
        kill((pid_t)atoi(entry->d_name + strlen(OURS)), 0) != 0 && errno == ESRCH &&
        snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) < (int)sizeof path) {
      rmdir(path);
    }
  }
  if (listing) {
    closedir(listing);
  }
}

static bool limit_group(const struct sandbox_limits *limits, const char *folder) {
  char number[40];
  snprintf(number, sizeof number, "%llu", (unsigned long long)(limits->processes + limits->threads + 3 + (limits->copies > 0 ? MAX_COPIES : 0)));
  bool is_limited = write_text(folder, "pids.max", number);
  if (limits->memory != UINT64_MAX) {
    snprintf(number, sizeof number, "%llu", (unsigned long long)limits->memory);
    is_limited = is_limited && write_text(folder, "memory.max", number);
    write_text(folder, "memory.swap.max", "0"); /* not there on systems without swap */
  }
  return is_limited;
}

void make_cgroup(const struct sandbox_limits *limits, char *folder, size_t size, struct sandbox_report *report) {
  char group[PATH_MAX];
  folder[0] = '\0';
  if (!find_group(group, sizeof group)) {
    report_protection(report, SANDBOX_CGROUP, PROTECTION_MISSING, "no control groups of version 2");
    return;
  }
  if (!is_delegated(group)) {
    *strrchr(group, '/') = '\0'; /* a group with processes has no groups below it: those beside it are the rule */
  }
  if (strlen(group) < strlen(MOUNT_POINT) || !is_delegated(group)) {
    report_protection(report, SANDBOX_CGROUP, PROTECTION_MISSING, "no control group is delegated");
    return;
  }
  remove_old_groups(group);
  if (snprintf(folder, size, "%s/%s%ld", group, OURS, (long)getpid()) >= (int)size || mkdir(folder, 0755) != 0 ||
      !limit_group(limits, folder)) {
    report_error(report, SANDBOX_CGROUP, "control group");
    remove_cgroup(folder);
    folder[0] = '\0';
    return;
  }
}

void join_cgroup(const char *folder, struct sandbox_report *report) {
  if (folder[0] && write_text(folder, "cgroup.procs", "0")) {
    report_protection(report, SANDBOX_CGROUP, PROTECTION_ACTIVE, "memory.max and pids.max");
  } else if (folder[0]) {
    report_error(report, SANDBOX_CGROUP, "cgroup.procs");
  }
}

void remove_cgroup(const char *folder) {
  if (folder[0]) {
    rmdir(folder);
  }
}

#endif
