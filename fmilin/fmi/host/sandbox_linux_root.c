/*
 * A root of its own: a file system in memory, read-only, into which the allowed paths are mounted. Other paths do not
 * exist there, so that nothing about them can be asked, either.
 */
#define _GNU_SOURCE
#include "sandbox_linux.h"

#if defined(__linux__)

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From linux/mount.h (Linux 5.12), of which compilers' copies are often older than the kernel. */
enum { CALL_MOUNT_SETATTR = 442 };
static const uint64_t MOUNT_READ_ONLY = 1, MOUNT_NO_SET_UID = 2, MOUNT_NO_DEVICES = 4;

struct mount_attributes {
  uint64_t set, clear, propagation, namespace;
};

/* Where the new root is put together: any folder will do, since what it hides is back after pivot_root. */
static const char *const PLACES[] = {"/tmp", "/usr", "/etc"};

static bool mount_bound(const char *source, const char *target, enum path_access access) {
  struct mount_attributes attributes = {MOUNT_NO_SET_UID, 0, 0, 0};
  attributes.set |= access == MAY_READ ? MOUNT_READ_ONLY : 0;
  attributes.set |= access == MAY_USE_DEVICE ? 0 : MOUNT_NO_DEVICES;
  if (mount(source, target, NULL, MS_BIND | MS_REC, NULL) != 0) {
    return false;
  }
  if (syscall(CALL_MOUNT_SETATTR, AT_FDCWD, target, AT_RECURSIVE, &attributes, sizeof attributes) != 0) {
    int problem = errno;
    umount2(target, MNT_DETACH); /* it could be written to */
    errno = problem;
    return false;
  }
  return true;
}

/* Makes the folders in which `path`, below the place, lies. What exists stays. */
static void make_parents(char *path, size_t place_length) {
  for (char *slash = strchr(path + place_length + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(path, 0755);
    *slash = '/';
  }
}

static bool join(char *target, const char *place, const char *path) {
  int length = snprintf(target, PATH_MAX, "%s%s", place, path);
  return length > 0 && length < PATH_MAX;
}

/* Whether a path is there already, because a folder above it is, with rights that suffice. */
static bool is_there(const char *target, const struct stat *source, enum path_access access) {
  struct stat status;
  return access == MAY_READ && stat(target, &status) == 0 && status.st_dev == source->st_dev &&
         status.st_ino == source->st_ino;
}

/* Mounts what the descriptor is open for at a path below the place. */
static bool add_mount(const char *place, const char *path, int descriptor, enum path_access access) {
  struct stat status;
  char target[PATH_MAX], source[40];
  if (fstat(descriptor, &status) != 0 || !join(target, place, path)) {
    return false;
  }
  if (is_there(target, &status, access)) {
    return true;
  }
  make_parents(target, strlen(place));
  if (S_ISDIR(status.st_mode)) {
    mkdir(target, 0755);
  } else {
    int made = open(target, O_CREAT | O_WRONLY | O_CLOEXEC | O_EXCL, 0644);
    if (made >= 0) {
      close(made);
    }
  }
  snprintf(source, sizeof source, "/proc/self/fd/%d", descriptor);
  return mount_bound(source, target, access);
}

/* /bin, /lib and the like, which are links into /usr in most distributions. */
static bool add_link(const char *place, const char *path) {
  char text[PATH_MAX], target[PATH_MAX];
  ssize_t length = readlink(path, text, sizeof text - 1);
  if (length < 0 || strchr(path + 1, '/') || !join(target, place, path)) {
    return false;
  }
  text[length] = '\0';
  return symlink(text, target) == 0;
}

/* The paths, opened before the place is mounted over: they may lie below it. */
static void open_paths(const struct allowed_path *paths, size_t count, int *descriptors) {
  for (size_t i = 0; i < count; i++) {
    descriptors[i] = open(paths[i].path, O_PATH | O_CLOEXEC);
  }
}

static bool add_scratch(const struct sandbox_limits *limits, const char *place) {
  char target[PATH_MAX], options[80];
  if (!join(target, place, limits->scratch)) {
    return false;
  }
  make_parents(target, strlen(place));
  mkdir(target, 0700);
  snprintf(options, sizeof options, "mode=0700,nr_inodes=16384,size=%llu", (unsigned long long)limits->scratch_size);
  return mount("scratch", target, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0;
}

/* Adds a path under its name, and under its real name if links lead there. */
static bool add_path(const struct sandbox_limits *limits, const char *place, const struct allowed_path *allowed,
                     const char *real_path, int descriptor) {
  if (limits->scratch && strcmp(allowed->path, limits->scratch) == 0) {
    return add_scratch(limits, place);
  }
  if (allowed->is_system && add_link(place, allowed->path)) {
    return true;
  }
  bool is_added = add_mount(place, allowed->path, descriptor, allowed->access);
  if (is_added && !allowed->is_system && real_path && strcmp(real_path, allowed->path) != 0) {
    return add_mount(place, real_path, descriptor, allowed->access);
  }
  return is_added;
}

/*
 * Shows the process itself (hidepid: those alone that it could trace), without the rest that /proc tells about the
 * machine. Containers that cover parts of /proc do not allow it.
 */
static void add_proc(const char *place, struct sandbox_report *report) {
  char target[PATH_MAX];
  const char *nothing = "there is none";
  if (is_active(report, SANDBOX_PROCESSES_HIDDEN) && join(target, place, "/proc") && mkdir(target, 0555) == 0 &&
      mount("proc", target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid,hidepid=4") == 0) {
    nothing = "its own process";
  }
  report_protection(report, SANDBOX_PROC, PROTECTION_ACTIVE, "%s", nothing);
}

static bool is_root_allowed(const struct allowed_path *paths, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char real_path[PATH_MAX];
    if (realpath(paths[i].path, real_path) && strcmp(real_path, "/") == 0) {
      return true;
    }
  }
  return false;
}

static bool mount_place(const char **place) {
  for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
    *place = PLACES[i];
    if (mount("root", *place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=4m") == 0) {
      return true;
    }
    if (errno != ENOENT && errno != ENOTDIR) {
      return false;
    }
  }
  return false;
}

/* Makes the place the root. What was the root before is nowhere then. */
static bool change_root(const char *place) {
  return chdir(place) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0 &&
         chdir("/") == 0 &&
         mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) == 0;
}

/* Puts the root together. Returns what could not be done, or NULL. */
static const char *build_root(const struct sandbox_limits *limits, const struct allowed_path *paths, size_t count,
                              struct sandbox_report *report) {
  static int descriptors[MAX_ALLOWED_PATHS];
  static char *real_paths[MAX_ALLOWED_PATHS];
  const char *place, *problem = NULL;
  open_paths(paths, count, descriptors);
  for (size_t i = 0; i < count; i++) {
    real_paths[i] = realpath(paths[i].path, NULL);
  }
  if (!mount_place(&place)) {
    return "mount of a file system in memory";
  }
  for (size_t i = 0; i < count && !problem; i++) {
    if (descriptors[i] >= 0 && !add_path(limits, place, &paths[i], real_paths[i], descriptors[i])) {
      problem = paths[i].path;
    }
  }
  int reason = errno;
  for (size_t i = 0; i < count; i++) {
    free(real_paths[i]);
    if (descriptors[i] >= 0) {
      close(descriptors[i]);
    }
  }
  if (!problem) {
    add_proc(place, report);
    problem = change_root(place) ? NULL : "pivot_root";
    reason = errno;
  }
  if (problem) {
    umount2(place, MNT_DETACH);
    errno = reason;
  }
  return problem;
}

void enter_own_root(const struct sandbox_limits *limits, const struct allowed_path *paths, size_t count,
                    struct sandbox_report *report) {
  const char *problem = NULL;
  if (is_root_allowed(paths, count)) {
    report_protection(report, SANDBOX_ROOT, PROTECTION_OFF, "/ is allowed");
  } else if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
    report_error(report, SANDBOX_ROOT, "mount namespace");
  } else if ((problem = build_root(limits, paths, count, report))) {
    report_error(report, SANDBOX_ROOT, problem);
  } else {
    report_protection(report, SANDBOX_ROOT, PROTECTION_ACTIVE, "mount namespace");
  }
  if (limits->scratch) {
    if (is_active(report, SANDBOX_ROOT)) {
      report_protection(report, SANDBOX_SCRATCH_SIZE, PROTECTION_ACTIVE, "in memory");
    } else {
      report_protection(report, SANDBOX_SCRATCH_SIZE, PROTECTION_MISSING, "needs a root of its own");
    }
  }
  if (!is_active(report, SANDBOX_ROOT)) {
    report_protection(report, SANDBOX_PROC, PROTECTION_MISSING, "needs a root of its own");
  }
  if (chdir(limits->scratch ? limits->scratch : "/") != 0) {
    report_error(report, SANDBOX_SCRATCH_SIZE, limits->scratch ? limits->scratch : "/");
  }
}

#endif
