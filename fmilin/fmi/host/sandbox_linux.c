/*
 * The sandbox on Linux. Its protections need no privileges and do not rely on each other.
 *
 * Three processes: the one that was started waits outside; the first of the namespace does nothing but adopt orphans,
 * and all end with it; the host is the second, so that signals reach it as they reach any program. With --copies the
 * second is the keeper, and the host its child (sandbox_linux_copies.c).
 */
#define _GNU_SOURCE
#include "sandbox_linux.h"

#if defined(__linux__)

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALL_PIDFD_OPEN = 434, CALL_CLOSE_RANGE = 436 };

static const char *const SYSTEM_PATHS[] = {
    "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/nix/store", "/gnu/store",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime", "/etc/timezone",
    "/etc/fonts", "/etc/os-release", "/sys/devices/system/cpu", "/sys/devices/system/node"};

static const char *const NETWORK_PATHS[] = {
    "/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services",
    "/etc/protocols", "/etc/ssl", "/etc/ca-certificates", "/etc/pki", "/etc/passwd", "/etc/group",
    "/run/systemd/resolve", "/sys/class/net", "/sys/devices"};

/* Where all of /proc would be seen, these alone: for stacks of threads, and numbers of processors and bytes. */
static const char *const PROC_PATHS[] = {"/proc/self/maps", "/proc/cpuinfo", "/proc/meminfo"};

static const char *const DEVICES[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};

#define COUNT(table) (sizeof(table) / sizeof *(table))

bool is_active(const struct sandbox_report *report, enum protection protection) {
  return report->protections[protection].state == PROTECTION_ACTIVE;
}

bool is_kernel_at_least(int major, int minor) {
  struct utsname names;
  int this_major = 0, this_minor = 0;
  return uname(&names) == 0 && sscanf(names.release, "%d.%d", &this_major, &this_minor) == 2 &&
         (this_major > major || (this_major == major && this_minor >= minor));
}

/* Paths. */

struct path_list {
  struct allowed_path *paths;
  size_t count;
};

static void add(struct path_list *list, const char *path, enum path_access access, bool is_system) {
  bool is_plain = path[0] == '/' && !strstr(path, "/..");
  const char *plain_path = is_plain ? path : realpath(path, NULL); /* kept until the process ends */
  if (plain_path) {
    list->paths[list->count++] = (struct allowed_path){plain_path, access, is_system};
  }
}

static void add_all(struct path_list *list, const char *const *paths, size_t count, enum path_access access,
                    bool is_system) {
  for (size_t i = 0; i < count; i++) {
    add(list, paths[i], access, is_system);
  }
}

static int compare_lengths(const void *a, const void *b) {
  size_t length_a = strlen(((const struct allowed_path *)a)->path);
  size_t length_b = strlen(((const struct allowed_path *)b)->path);
  return (length_a > length_b) - (length_a < length_b);
}

size_t list_allowed_paths(const struct sandbox_limits *limits, struct allowed_path *paths) {
  struct path_list list = {paths, 0};
  add_all(&list, SYSTEM_PATHS, COUNT(SYSTEM_PATHS), MAY_READ, true);
  add_all(&list, NETWORK_PATHS, limits->network ? COUNT(NETWORK_PATHS) : 0, MAY_READ, true);
  add_all(&list, DEVICES, COUNT(DEVICES), MAY_USE_DEVICE, true);
  add_all(&list, limits->read, limits->read_count, MAY_READ, false);
  add_all(&list, limits->write, limits->write_count, MAY_WRITE, false);
  if (limits->scratch) {
    add(&list, limits->scratch, MAY_WRITE, false);
  }
  qsort(list.paths, list.count, sizeof *list.paths, compare_lengths);
  return list.count;
}

/* Descriptors. */

static void close_range_or_all(unsigned first, unsigned last) {
  struct rlimit limit;
  if (first > last || syscall(CALL_CLOSE_RANGE, first, last, 0) == 0) {
    return;
  }
  rlim_t end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < 65536 ? limit.rlim_max : 65536;
  for (unsigned descriptor = first; descriptor <= last && descriptor < end; descriptor++) {
    close((int)descriptor);
  }
}

static void close_descriptors(const struct sandbox_limits *limits) {
  unsigned first = STDERR_FILENO + 1;
  for (;;) { /* the gaps between those that are kept, in ascending order */
    unsigned next = UINT_MAX;
    for (size_t i = 0; i <= limits->descriptor_count; i++) {
      int kept = i < limits->descriptor_count ? limits->descriptors[i] : limits->client_descriptor;
      if (kept >= (int)first && (unsigned)kept < next) {
        next = (unsigned)kept;
      }
    }
    if (next > first) {
      close_range_or_all(first, next - 1);
    }
    if (next == UINT_MAX) {
      break;
    }
    first = next + 1;
  }
}

/* Namespaces. */

static bool write_file(const char *path, const char *text) {
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

/* In a user namespace of its own a process may make the others. The user keeps name and number. */
static void enter_user_namespace(struct sandbox_report *report) {
  char users[64], groups[64];
  snprintf(users, sizeof users, "%lu %lu 1", (unsigned long)geteuid(), (unsigned long)geteuid());
  snprintf(groups, sizeof groups, "%lu %lu 1", (unsigned long)getegid(), (unsigned long)getegid());
  if (unshare(CLONE_NEWUSER) != 0) {
    report_error(report, SANDBOX_USERS, "user namespace");
    return;
  }
  prctl(PR_SET_DUMPABLE, 1); /* or these files would belong to the administrator */
  write_file("/proc/self/setgroups", "deny");
  if (!write_file("/proc/self/uid_map", users) || !write_file("/proc/self/gid_map", groups)) {
    report_error(report, SANDBOX_USERS, "uid_map");
    return;
  }
  report_protection(report, SANDBOX_USERS, PROTECTION_ACTIVE, "user namespace");
}

static void enter_namespace(int kind, enum protection protection, const char *name, struct sandbox_report *report) {
  if (unshare(kind) == 0) {
    report_protection(report, protection, PROTECTION_ACTIVE, "%s namespace", name);
  } else {
    report_error(report, protection, name);
  }
}

static void enter_namespaces(const struct sandbox_limits *limits, struct sandbox_report *report) {
  enter_user_namespace(report);
  enter_namespace(CLONE_NEWPID, SANDBOX_PROCESSES_HIDDEN, "process", report);
  enter_namespace(CLONE_NEWIPC, SANDBOX_IPC, "IPC", report);
  if (limits->network) {
    report_protection(report, SANDBOX_NETWORK, PROTECTION_OFF, "--network");
    report_protection(report, SANDBOX_HOST_NAME, PROTECTION_OFF, "--network");
    return;
  }
  enter_namespace(CLONE_NEWNET, SANDBOX_NETWORK, "network", report);
  enter_namespace(CLONE_NEWUTS, SANDBOX_HOST_NAME, "UTS", report);
  if (is_active(report, SANDBOX_HOST_NAME) && (sethostname("fmilin", 6) != 0 || setdomainname("", 0) != 0)) {
    report_error(report, SANDBOX_HOST_NAME, "sethostname");
  }
}

/* The process outside. */

static void ignore_signal(int number) { (void)number; }

static void drop_capabilities(void) {
  struct {
    uint32_t version;
    int pid;
  } header = {0x20080522, 0};
  uint32_t none[6] = {0};
  for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; capability++) {
  }
  prctl(47 /* PR_CAP_AMBIENT */, 4 /* PR_CAP_AMBIENT_CLEAR_ALL */, 0, 0, 0);
  syscall(SYS_capset, &header, none);
}

/*
 * Waits until the host ends, or for two seconds after the client has gone; returns its wait status. Meanwhile it decides
 * about copies.
 */
static int wait_for_host(pid_t host, int client_descriptor, int listener, uint64_t copies) {
  const struct timespec grace = {2, 0};
  struct pollfd polled[] = {{client_descriptor, 0, 0}, {listener, POLLIN, 0}}; /* negative descriptors are ignored */
  struct sigaction on_child = {.sa_handler = ignore_signal};
  sigset_t child, none;
  int status;
  sigemptyset(&none);
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, NULL);
  sigaction(SIGCHLD, &on_child, NULL);
  bool has_gone = false;
  for (;;) {
    pid_t ended = waitpid(host, &status, WNOHANG);
    if (ended == host) {
      return status;
    }
    int events = ppoll(polled, 2, has_gone ? &grace : NULL, &none);
    if (has_gone && events == 0) {
      kill(host, SIGKILL);
    }
    if (events > 0 && polled[0].revents) { /* POLLHUP or POLLERR: nothing else is asked for */
      has_gone = true;
      polled[0].fd = -1;
    }
    if (events > 0 && polled[1].revents & POLLIN) {
      decide_about_copy(listener, host, copies);
    } else if (events > 0 && polled[1].revents) {
      polled[1].fd = -1;
    }
  }
}

/* Ends what the host has started and left behind, where no namespace does it. */
static void end_orphans(void) {
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
  for (int attempt = 0; attempt < 1000; attempt++) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = descriptor < 0 ? 0 : read(descriptor, text, sizeof text - 1);
    if (descriptor >= 0) {
      close(descriptor);
    }
    if (length <= 0) {
      return;
    }
    text[length] = '\0';
    char *end = text;
    for (long child = strtol(text, &end, 10); child > 0; child = strtol(end, &end, 10)) {
      kill((pid_t)child, SIGKILL);
      waitpid((pid_t)child, NULL, 0); /* not for others: those that it has started are among the next */
    }
  }
}

static void supervise(pid_t first, pid_t host, const struct sandbox_limits *limits, const char *cgroup) {
  const int client = limits->client_descriptor;
  lower_limit(RLIMIT_CORE, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  drop_capabilities();
  int listener = receive_listener();
  if (listener >= 0) {
    listener = dup2(listener, client + 1);
  }
  if (client > 0) {
    close_range_or_all(0, (unsigned)client - 1);
  }
  close_range_or_all((unsigned)(client + (listener >= 0 ? 2 : 1)), UINT_MAX);
  int status = wait_for_host(host, client, listener, limits->copies);
  if (first > 0) {
    kill(first, SIGKILL);
    waitpid(first, NULL, 0); /* returns when the whole namespace has ended */
  }
  end_orphans();
  remove_cgroup(cgroup);
  end_like(status);
}

void end_with_parent(pid_t parent_outside) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent_outside && getppid() != 0) {
    _exit(1); /* it has ended before */
  }
}

void be_harmless(void) {
  lower_limit(RLIMIT_CORE, 0);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  drop_capabilities();
  close_range_or_all(0, UINT_MAX);
}

/*
 * The same in a namespace of processes, where the parent outside has the number 0 whether it has ended or not. Before
 * Linux 5.3 there is no descriptor of a process; then one that is killed at its very start may leave its children.
 */
static void end_with_process(pid_t parent, int descriptor) {
  struct pollfd polled = {descriptor, POLLIN, 0};
  end_with_parent(parent);
  if (descriptor >= 0 && poll(&polled, 1, 0) > 0) {
    _exit(1);
  }
}

static void be_first_process(pid_t parent, int descriptor) {
  signal(SIGCHLD, SIG_IGN); /* orphans leave no zombies */
  end_with_process(parent, descriptor);
  be_harmless();
  for (;;) {
    pause();
  }
}

/* Returns in the host. The process that was started stays behind as the one that waits. */
static int fork_host(const struct sandbox_limits *limits, const char *cgroup, struct sandbox_report *report) {
  pid_t parent = getpid(), first = 0;
  int descriptor = (int)syscall(CALL_PIDFD_OPEN, parent, 0);
  if (is_active(report, SANDBOX_PROCESSES_HIDDEN)) {
    first = fork();
    if (first == 0) {
      be_first_process(parent, descriptor);
    }
  } else {
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  }
  pid_t host = first < 0 ? -1 : fork();
  if (host > 0) {
    supervise(first, host, limits, cgroup);
  }
  if (host == 0) {
    end_with_process(parent, descriptor);
    if (descriptor >= 0) {
      close(descriptor);
    }
    if (limits->client_descriptor >= 0) {
      close(limits->client_descriptor); /* through /proc it could be opened for writing, and kept from being closed */
    }
  }
  return host;
}

/* Limits on resources. */

/*
 * Threads and processes. The kernel counts those of a user in each user namespace (Linux 5.14), but not those of the
 * administrator; and those of a process namespace (Linux 6.14), of which 301 is the smallest limit. Older kernels would
 * count all processes of the user, or change the limit of the whole machine.
 */
static void limit_threads(const struct sandbox_limits *limits, struct sandbox_report *report) {
  uint64_t number = limits->threads + limits->processes + 3; /* with the processes outside, the first, and the host */
  number += limits->copies > 0 ? MAX_COPIES : 0;
  bool has_users = is_active(report, SANDBOX_USERS);
  if (limits->threads == UINT64_MAX || limits->threads > INT_MAX || limits->processes > INT_MAX) {
    report_protection(report, SANDBOX_THREADS, PROTECTION_OFF, "no limit is asked for");
    return;
  }
  report_protection(report, SANDBOX_THREADS, PROTECTION_MISSING,
                    "needs a user namespace and Linux 5.14, or 6.14 for the administrator");
  if (has_users && is_active(report, SANDBOX_PROCESSES_HIDDEN) && is_kernel_at_least(6, 14)) {
    char text[24];
    uint64_t most = number < 301 ? 301 : number;
    snprintf(text, sizeof text, "%llu", (unsigned long long)most);
    if (write_file("/proc/sys/kernel/pid_max", text)) {
      report_protection(report, SANDBOX_THREADS, PROTECTION_ACTIVE, "%s, of the process namespace", text);
    }
  }
  if (has_users && geteuid() != 0 && is_kernel_at_least(5, 14) && lower_limit(RLIMIT_NPROC, number)) {
    report_protection(report, SANDBOX_THREADS, PROTECTION_ACTIVE, "%llu", (unsigned long long)number);
  }
  if (is_active(report, SANDBOX_CGROUP)) {
    report_protection(report, SANDBOX_THREADS, PROTECTION_ACTIVE, "%llu, of the control group",
                      (unsigned long long)number);
  }
}

/*
 * These bound memory that no address space shows, too. Page tables are at most a 512th of the address space (3.7 MB of
 * 2 GiB). What waits in socket pairs and pipes is bounded by the number of descriptors, since the filter refuses to
 * enlarge their buffers and to send descriptors (58 MB in 256). The scratch folder has a size of its own.
 */
static void limit_resources(const struct sandbox_limits *limits, struct sandbox_report *report) {
  limit_files(limits, report);
  if (lower_limit(RLIMIT_MEMLOCK, 65536) && lower_limit(RLIMIT_MSGQUEUE, 0) && lower_limit(RLIMIT_SIGPENDING, 1024)) {
    report_protection(report, SANDBOX_QUEUES, PROTECTION_ACTIVE, "%s", "");
  } else {
    report_error(report, SANDBOX_QUEUES, "setrlimit");
  }
  limit_resource(RLIMIT_AS, limits->memory, SANDBOX_MEMORY, report);
}

/* All together. */

static void turn_off(struct sandbox_report *report, enum protection first, enum protection last) {
  for (int protection = (int)first; protection <= (int)last; protection++) {
    report_protection(report, (enum protection)protection, PROTECTION_OFF, "--no-restrictions");
  }
}

static void give_up_privileges(struct sandbox_report *report) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
    report_protection(report, SANDBOX_NO_NEW_PRIVILEGES, PROTECTION_ACTIVE, "%s", "");
  } else {
    report_error(report, SANDBOX_NO_NEW_PRIVILEGES, "prctl");
  }
}

/* Reads the result back: without CAP_SETPCAP a process keeps what it may gain, and has nothing. */
static void give_up_capabilities(struct sandbox_report *report) {
  struct {
    uint32_t version;
    int pid;
  } header = {0x20080522, 0};
  uint32_t sets[6] = {0};
  drop_capabilities();
  if (syscall(SYS_capget, &header, sets) == 0 && !(sets[0] | sets[1] | sets[3] | sets[4])) {
    report_protection(report, SANDBOX_CAPABILITIES, PROTECTION_ACTIVE, "%s", "");
  } else {
    report_error(report, SANDBOX_CAPABILITIES, "capset");
  }
}

static void restrict_host(const struct sandbox_limits *limits, struct sandbox_report *report) {
  static struct allowed_path paths[MAX_ALLOWED_PATHS];
  size_t count = list_allowed_paths(limits, paths);
  enter_own_root(limits, paths, count, report);
  if (is_active(report, SANDBOX_ROOT)) {
    paths[count++] = (struct allowed_path){"/proc", MAY_READ, true};
  } else {
    for (size_t i = 0; i < COUNT(PROC_PATHS); i++) {
      paths[count++] = (struct allowed_path){PROC_PATHS[i], MAY_READ, true};
    }
  }
  limit_resources(limits, report);
  give_up_privileges(report);
  restrict_by_landlock(limits, paths, count, report);
  give_up_capabilities(report);
  bool may_copy = ask_about_copies();
  filter_system_calls(limits, may_copy, report);
  if (limits->processes > 0) {
    report_protection(report, SANDBOX_NO_NEW_PROCESSES, PROTECTION_OFF, "--processes %llu",
                      (unsigned long long)limits->processes);
  } else if (is_active(report, SANDBOX_SYSTEM_CALLS)) {
    report_protection(report, SANDBOX_NO_NEW_PROCESSES, PROTECTION_ACTIVE, may_copy ? "seccomp; copies of it" : "seccomp");
  } else {
    report_protection(report, SANDBOX_NO_NEW_PROCESSES, PROTECTION_MISSING, "needs seccomp");
  }
}

int apply_sandbox(const struct sandbox_limits *limits, struct sandbox_report *report) {
  char cgroup[PATH_MAX] = "";
  memset(report, 0, sizeof *report);
  redirect_standard_descriptors(limits, report);
  close_descriptors(limits);
  if (limits->no_restrictions) {
    turn_off(report, SANDBOX_USERS, SANDBOX_PROC);
    turn_off(report, SANDBOX_NO_NEW_PRIVILEGES, SANDBOX_NO_NEW_PROCESSES);
  } else {
    make_cgroup(limits, cgroup, sizeof cgroup, report);
    enter_namespaces(limits, report);
  }
  prepare_copies(limits);
  if (fork_host(limits, cgroup, report) < 0) {
    return -1;
  }
  start_session(report);
  join_cgroup(cgroup, report);
  if (limits->copies > 0 && (limits->no_restrictions || is_active(report, SANDBOX_PROCESSES_HIDDEN))) {
    start_keeper();
  }
  if (limits->no_restrictions) {
    limit_resources(limits, report);
  } else {
    limit_threads(limits, report);
    restrict_host(limits, report);
  }
  return are_required_active(limits, report) ? 0 : -1;
}

#endif
