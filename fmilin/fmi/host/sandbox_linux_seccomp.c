/*
 * A filter of system calls (https://docs.kernel.org/userspace-api/seccomp_filter.html).
 *
 * It refuses (EPERM) or hides (ENOSYS, where libraries then go another way) what the code of an FMU has no use for, and
 * lets all else pass: FMUs contain the run-time libraries of whole languages. Calls of kernels that are newer than this
 * file are hidden. The filter sees numbers and arguments, not what pointers lead to.
 *
 * Calls that pass whatever their arguments cost nothing: the kernel remembers them (Linux 5.11).
 */
#define _GNU_SOURCE
#include "sandbox_linux.h"

#if defined(__linux__)

#if defined(__x86_64__) || defined(__aarch64__) || defined(__i386__)

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than some compilers' copies of the kernel's headers; these numbers are the same on all machines. */
enum {
  CALL_PIDFD_SEND_SIGNAL = 424, CALL_IO_URING_SETUP = 425, CALL_IO_URING_ENTER = 426, CALL_IO_URING_REGISTER = 427,
  CALL_OPEN_TREE = 428, CALL_MOVE_MOUNT = 429, CALL_FSOPEN = 430, CALL_FSCONFIG = 431, CALL_FSMOUNT = 432,
  CALL_FSPICK = 433, CALL_PIDFD_OPEN = 434, CALL_CLONE3 = 435, CALL_PIDFD_GETFD = 438, CALL_PROCESS_MADVISE = 440,
  CALL_MOUNT_SETATTR = 442, CALL_QUOTACTL_FD = 443, CALL_LANDLOCK_CREATE_RULESET = 444, CALL_LANDLOCK_ADD_RULE = 445,
  CALL_LANDLOCK_RESTRICT_SELF = 446, CALL_MEMFD_SECRET = 447, CALL_PROCESS_MRELEASE = 448,
  CALL_SET_MEMPOLICY_HOME_NODE = 450, CALL_FCHMODAT2 = 452, CALL_STATMOUNT = 457, CALL_LISTMOUNT = 458,
  CALL_LSM_GET_SELF_ATTR = 459, CALL_LSM_SET_SELF_ATTR = 460, CALL_LSM_LIST_MODULES = 461, CALL_SETXATTRAT = 463,
  CALL_REMOVEXATTRAT = 466, CALL_OPEN_TREE_ATTR = 467, CALL_FILE_SETATTR = 469,
  LAST_KNOWN_CALL = 469 /* Linux 6.18 */
}; /* clang-format off */

#if defined(__x86_64__)
static const uint32_t ARCHITECTURE = AUDIT_ARCH_X86_64;
#elif defined(__i386__)
static const uint32_t ARCHITECTURE = AUDIT_ARCH_I386;
#else
static const uint32_t ARCHITECTURE = AUDIT_ARCH_AARCH64;
#endif
static const uint32_t FIRST_X32_CALL = 0x40000000; /* the third set of numbers of x86-64 */
static const uint32_t KILL_PROCESS = 0x80000000;   /* SECCOMP_RET_KILL_PROCESS, Linux 4.14 */
static const uint32_t NEW_NAMESPACES = 0x7E020080; /* CLONE_NEW... */
static const uint32_t REFUSE = SECCOMP_RET_ERRNO | EPERM, HIDE = SECCOMP_RET_ERRNO | ENOSYS;

static const int REFUSED[] = {
    /* other processes */
    __NR_ptrace, __NR_process_vm_readv, __NR_process_vm_writev, __NR_kcmp, __NR_rt_sigqueueinfo,
    __NR_rt_tgsigqueueinfo, __NR_setpriority, __NR_sched_setparam, __NR_sched_setscheduler, __NR_sched_setattr,
    __NR_ioprio_set, __NR_migrate_pages, __NR_move_pages, __NR_get_robust_list, CALL_PROCESS_MADVISE,
    CALL_PROCESS_MRELEASE, CALL_PIDFD_OPEN, CALL_PIDFD_GETFD, CALL_PIDFD_SEND_SIGNAL,
    /* mounts and namespaces */
    __NR_mount, __NR_umount2, __NR_pivot_root, __NR_chroot, __NR_unshare, __NR_setns, CALL_MOVE_MOUNT, CALL_OPEN_TREE,
    CALL_OPEN_TREE_ATTR, CALL_FSOPEN, CALL_FSCONFIG, CALL_FSMOUNT, CALL_FSPICK, CALL_MOUNT_SETATTR, CALL_STATMOUNT,
    CALL_LISTMOUNT,
    /* the kernel and the machine */
    __NR_bpf, __NR_perf_event_open, __NR_userfaultfd, __NR_keyctl, __NR_add_key, __NR_request_key, __NR_init_module,
    __NR_finit_module, __NR_delete_module, __NR_kexec_load, __NR_reboot, __NR_swapon, __NR_swapoff, __NR_acct, __NR_quotactl, CALL_QUOTACTL_FD, __NR_sethostname, __NR_setdomainname,
    __NR_settimeofday, __NR_clock_settime, __NR_clock_adjtime, __NR_adjtimex, __NR_syslog, __NR_vhangup,
    CALL_SET_MEMPOLICY_HOME_NODE, CALL_LSM_SET_SELF_ATTR, CALL_LSM_GET_SELF_ATTR, CALL_LSM_LIST_MODULES,
    /* files by handles, and watching whole file systems */
    __NR_open_by_handle_at, __NR_name_to_handle_at, __NR_fanotify_init,
    /* memory of the kernel, which no limit of a process counts: files without names, segments, queues, filters */
    __NR_memfd_create, CALL_MEMFD_SECRET, __NR_shmget, __NR_shmat, __NR_shmctl, __NR_msgget, __NR_msgsnd, __NR_semget,
    __NR_mq_open, __NR_io_setup, __NR_seccomp, CALL_LANDLOCK_CREATE_RULESET, CALL_LANDLOCK_ADD_RULE,
    CALL_LANDLOCK_RESTRICT_SELF,
    /* modes, owners, times and attributes of files, which Landlock leaves alone */
    __NR_fchmod, __NR_fchmodat, CALL_FCHMODAT2, __NR_fchown, __NR_fchownat, __NR_setxattr, __NR_lsetxattr,
    __NR_fsetxattr, CALL_SETXATTRAT, __NR_removexattr, __NR_lremovexattr, __NR_fremovexattr, CALL_REMOVEXATTRAT,
    __NR_utimensat, CALL_FILE_SETATTR,
#if !defined(__i386__)
    __NR_kexec_file_load,
#endif
#if !defined(__aarch64__)
    __NR_chmod, __NR_chown, __NR_lchown, __NR_utime, __NR_utimes, __NR_futimesat, __NR_modify_ldt, __NR_iopl,
    __NR_ioperm, __NR_uselib, __NR_ustat, __NR_sysfs, __NR__sysctl,
#endif
#if defined(__i386__) /* the same with other widths; all of shared memory, queues and semaphores behind one number */
    __NR_umount, __NR_stime, __NR_nice, __NR_vm86, __NR_vm86old, __NR_ipc, __NR_chown32, __NR_lchown32, __NR_fchown32,
    __NR_clock_settime64, __NR_clock_adjtime64, __NR_utimensat_time64,
#endif
};

static const int HIDDEN[] = {
    CALL_CLONE3, /* its flags lie behind a pointer; the C library takes clone instead */
    CALL_IO_URING_SETUP, CALL_IO_URING_ENTER, CALL_IO_URING_REGISTER, /* make other calls, unseen by a filter */
};

/* Starting processes and replacing this one. */
static const int OF_PROCESSES[] = {
    __NR_execve, __NR_execveat,
#if !defined(__aarch64__)
    __NR_vfork,
#endif
};

/* What clone does, too. */
static const int OF_COPIES[] = {
#if !defined(__aarch64__)
    __NR_fork,
#else
    -1,
#endif
};

/* With pairs of connected sockets alone there is no use for these; messages could carry descriptors beyond the limit. */
static const int OF_SOCKETS[] = {
    __NR_socket, __NR_bind, __NR_connect, __NR_listen, __NR_accept4, __NR_setsockopt, __NR_sendmsg, __NR_sendmmsg,
#if defined(__i386__)
    __NR_socketcall, /* all of these, with arguments that lie behind a pointer */
#else
    __NR_accept,
#endif
};

static const uint32_t FAMILIES[] = {AF_UNIX /* alone with --local-sockets */, AF_INET, AF_INET6, AF_NETLINK};

/* Owners of descriptors are signalled; a pipe may be made to hold a megabyte; a lease stops others who open a file. */
static const uint32_t FORBIDDEN_FCNTL[] = {8 /* F_SETOWN */, 10 /* F_SETSIG */, 15 /* F_SETOWN_EX */,
                                           1024 /* F_SETLEASE */, 1026 /* F_NOTIFY */, 1031 /* F_SETPIPE_SZ */};

static const uint32_t FORBIDDEN_PRCTL[] = {
    1 /* PDEATHSIG */, 4 /* DUMPABLE */, 22 /* SECCOMP */, 28 /* SECUREBITS */, 35 /* MM */,
    36 /* CHILD_SUBREAPER */, 47 /* CAP_AMBIENT */, 57 /* IO_FLUSHER */, 62 /* SCHED_CORE */, 0x59616D61 /* PTRACER */};

/* What C libraries ask of any descriptor. All others act on devices, terminals and file systems. */
static const uint32_t ALLOWED_IOCTL[] = {
    0x5401 /* TCGETS: isatty */, 0x5413 /* TIOCGWINSZ: isatty */, 0x802C542A /* TCGETS2: isatty */,
    0x541B /* FIONREAD */, 0x5421 /* FIONBIO */, 0x5450 /* FIONCLEX */, 0x5451 /* FIOCLEX */};

/* Addresses and names of network interfaces, for licences that belong to one. */
static const uint32_t ALLOWED_IOCTL_OF_NETWORK[] = {0x8912 /* SIOCGIFCONF */, 0x8913 /* GIFFLAGS */, 0x8915 /* GIFADDR */,
                                                    0x8919 /* GIFBRDADDR */, 0x891B /* GIFNETMASK */, 0x8921 /* GIFMTU */,
                                                    0x8927 /* GIFHWADDR */, 0x8933 /* GIFINDEX */, 0x8910 /* GIFNAME */};
/* clang-format on */

enum { MAX_STEPS = 1024 };

struct filter {
  struct sock_filter steps[MAX_STEPS];
  size_t count;
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static void add_step(struct filter *filter, int code, size_t if_true, size_t if_false, uint32_t value) {
  if (filter->count < MAX_STEPS) {
    filter->steps[filter->count] =
        (struct sock_filter){(uint16_t)code, (uint8_t)if_true, (uint8_t)if_false, value};
  }
  filter->count++;
}

static void load(struct filter *filter, size_t offset) {
  add_step(filter, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void answer(struct filter *filter, uint32_t action) { add_step(filter, BPF_RET | BPF_K, 0, 0, action); }

static void answer_calls(struct filter *filter, const int *calls, size_t count, uint32_t action) {
  for (size_t i = 0; i < count; i++) {
    add_step(filter, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)calls[i]);
    answer(filter, action);
  }
}

/* Loads the lower half of an argument, if the call is this one; else `length` steps that follow are skipped. */
static void load_argument(struct filter *filter, int call, size_t position, size_t length) {
  add_step(filter, BPF_JMP | BPF_JEQ | BPF_K, 0, 1 + length, (uint32_t)call);
  load(filter, offsetof(struct seccomp_data, args) + 8 * position); /* these machines are little-endian */
}

static void decide_by_values(struct filter *filter, int call, size_t position, const uint32_t *values, size_t count,
                             uint32_t if_one_of_them, uint32_t else_) {
  load_argument(filter, call, position, count + 2);
  for (size_t i = 0; i < count; i++) {
    add_step(filter, BPF_JMP | BPF_JEQ | BPF_K, count - i, 0, values[i]);
  }
  answer(filter, else_);
  answer(filter, if_one_of_them);
}

static void allow_values(struct filter *filter, int call, size_t position, const uint32_t *values, size_t count) {
  decide_by_values(filter, call, position, values, count, SECCOMP_RET_ALLOW, REFUSE);
}

static void refuse_values(struct filter *filter, int call, size_t position, const uint32_t *values, size_t count) {
  decide_by_values(filter, call, position, values, count, REFUSE, SECCOMP_RET_ALLOW);
}

/* New threads pass; new processes, if they are allowed; new namespaces never. */
static void decide_clone(struct filter *filter, bool may_start_processes) {
  load_argument(filter, __NR_clone, 0, 4);
  add_step(filter, BPF_JMP | BPF_JSET | BPF_K, 1, 0, NEW_NAMESPACES);
  add_step(filter, BPF_JMP | BPF_JSET | BPF_K, 1, 0, may_start_processes ? UINT32_MAX : CLONE_THREAD);
  answer(filter, REFUSE);
  answer(filter, SECCOMP_RET_ALLOW);
}

/* Of socket pairs those of streams alone: others can send to addresses. */
static void decide_socketpair(struct filter *filter) {
  load_argument(filter, __NR_socketpair, 1, 4);
  add_step(filter, BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xF); /* without SOCK_CLOEXEC and SOCK_NONBLOCK */
  add_step(filter, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SOCK_STREAM);
  answer(filter, REFUSE);
  answer(filter, SECCOMP_RET_ALLOW);
}

/*
 * A namespace of processes keeps signals inside, so that started processes can be signalled, too. Without one, or
 * without such processes, this process signals itself alone.
 */
static void decide_signals(struct filter *filter, bool is_inside_namespace, bool may_start_processes) {
  const uint32_t self[] = {(uint32_t)getpid(), 0}; /* 0: its group, which is its own */
  const uint32_t this_thread[] = {0};
  if (!(is_inside_namespace && may_start_processes)) {
    allow_values(filter, __NR_kill, 0, self, COUNT(self));
    allow_values(filter, __NR_tgkill, 0, self, 1);
    answer_calls(filter, (const int[]){__NR_tkill}, 1, REFUSE);
  }
  if (!is_inside_namespace) {
    allow_values(filter, __NR_sched_setaffinity, 0, this_thread, 1);
  }
}

static void write_filter(struct filter *filter, const struct sandbox_limits *limits, bool may_copy,
                         const struct sandbox_report *report) {
  const uint32_t this_process[] = {0}, plain_personality[] = {0, UINT32_MAX}; /* all bits: it is asked for */
  bool may_start_processes = limits->processes > 0;
  filter->count = 0;
  load(filter, offsetof(struct seccomp_data, arch));
  add_step(filter, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCHITECTURE);
  answer(filter, KILL_PROCESS);
  load(filter, offsetof(struct seccomp_data, nr));
  add_step(filter, BPF_JMP | BPF_JGE | BPF_K, 0, 3, FIRST_X32_CALL);
  add_step(filter, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 2 * FIRST_X32_CALL);
  answer(filter, HIDE); /* a negative number */
  answer(filter, KILL_PROCESS);
  add_step(filter, BPF_JMP | BPF_JGT | BPF_K, 0, 1, LAST_KNOWN_CALL);
  answer(filter, HIDE);
  answer_calls(filter, REFUSED, COUNT(REFUSED), REFUSE);
  answer_calls(filter, HIDDEN, COUNT(HIDDEN), HIDE);
  if (!may_start_processes) {
    answer_calls(filter, OF_PROCESSES, COUNT(OF_PROCESSES), REFUSE);
  }
  if (!may_start_processes && !may_copy) {
    answer_calls(filter, OF_COPIES, COUNT(OF_COPIES), REFUSE);
  }
  decide_clone(filter, may_start_processes || may_copy);
  refuse_values(filter, __NR_fcntl, 1, FORBIDDEN_FCNTL, COUNT(FORBIDDEN_FCNTL));
#if defined(__i386__)
  refuse_values(filter, __NR_fcntl64, 1, FORBIDDEN_FCNTL, COUNT(FORBIDDEN_FCNTL));
#endif
  refuse_values(filter, __NR_prctl, 0, FORBIDDEN_PRCTL, COUNT(FORBIDDEN_PRCTL));
  allow_values(filter, __NR_prlimit64, 0, this_process, 1);
  allow_values(filter, __NR_personality, 0, plain_personality, COUNT(plain_personality));
  if (limits->network) {
    uint32_t requests[COUNT(ALLOWED_IOCTL) + COUNT(ALLOWED_IOCTL_OF_NETWORK)];
    size_t count = 0;
    for (size_t i = 0; i < COUNT(ALLOWED_IOCTL); i++) {
      requests[count++] = ALLOWED_IOCTL[i];
    }
    for (size_t i = 0; i < COUNT(ALLOWED_IOCTL_OF_NETWORK); i++) {
      requests[count++] = ALLOWED_IOCTL_OF_NETWORK[i];
    }
    allow_values(filter, __NR_ioctl, 1, requests, count);
    allow_values(filter, __NR_socket, 0, FAMILIES, COUNT(FAMILIES));
  } else if (limits->local_sockets && is_active(report, SANDBOX_ROOT) && is_active(report, SANDBOX_NETWORK)) {
    allow_values(filter, __NR_ioctl, 1, ALLOWED_IOCTL, COUNT(ALLOWED_IOCTL));
    allow_values(filter, __NR_socket, 0, FAMILIES, 1);
  } else {
    allow_values(filter, __NR_ioctl, 1, ALLOWED_IOCTL, COUNT(ALLOWED_IOCTL));
    answer_calls(filter, OF_SOCKETS, COUNT(OF_SOCKETS), REFUSE);
    decide_socketpair(filter);
  }
  decide_signals(filter, is_active(report, SANDBOX_PROCESSES_HIDDEN), may_start_processes || may_copy);
  answer(filter, SECCOMP_RET_ALLOW);
}

void filter_system_calls(const struct sandbox_limits *limits, bool may_copy, struct sandbox_report *report) {
  static struct filter filter;
  write_filter(&filter, limits, may_copy, report);
  if (filter.count > MAX_STEPS) {
    errno = E2BIG;
    report_error(report, SANDBOX_SYSTEM_CALLS, "seccomp");
    return;
  }
  struct sock_fprog program = {(unsigned short)filter.count, filter.steps};
  /* Before Linux 5.16 a filter without this flag slows all code down, against an attack on other code in one process. */
  if (syscall(__NR_seccomp, 1 /* SECCOMP_SET_MODE_FILTER */, 4 /* SECCOMP_FILTER_FLAG_SPEC_ALLOW */, &program) != 0 &&
      syscall(__NR_seccomp, 1, 0, &program) != 0) {
    report_error(report, SANDBOX_SYSTEM_CALLS, "seccomp");
    return;
  }
  report_protection(report, SANDBOX_SYSTEM_CALLS, PROTECTION_ACTIVE, "seccomp, %zu steps", filter.count);
}

#else

void filter_system_calls(const struct sandbox_limits *limits, bool may_copy, struct sandbox_report *report) {
  (void)limits, (void)may_copy;
  report_protection(report, SANDBOX_SYSTEM_CALLS, PROTECTION_MISSING, "numbers of system calls are not known here");
}

#endif

#endif
