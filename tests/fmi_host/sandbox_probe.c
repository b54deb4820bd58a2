/*
 * Applies the sandbox of the FMU host to itself and then tries one thing that code of an FMU could try:
 *
 *   sandbox_probe [--hide-call N] OPTIONS -- ATTEMPT [ARGUMENT]     or     sandbox_probe --run OPTIONS -- COMMAND...
 *
 * --hide-call makes a system call unknown beforehand, as in an older kernel or in a container; more than one, too.
 *
 * Writes the report, then a line `done` or `refused: REASON`. The exit status is 0 if the attempt was refused, 1 if it
 * got through, 2 if the sandbox was not applied.
 */
#define _GNU_SOURCE
#include "sandbox.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *argument = "";
static pid_t client; /* the process that started this one, as it saw itself before */

static bool opens(const char *path, int flags) {
  int descriptor = open(path, flags | O_CLOEXEC, 0600);
  return descriptor >= 0 && close(descriptor) == 0;
}

static bool read_file(void) { return opens(argument, O_RDONLY); }
static bool write_file(void) { return opens(argument, O_WRONLY | O_CREAT); }
static bool make_folder(void) { return mkdir(argument, 0700) == 0; }
static bool delete_file(void) { return unlink(argument) == 0; }
static bool empty_file(void) { return truncate(argument, 0) == 0; }
static bool change_mode(void) { return chmod(argument, 0777) == 0; }
static bool execute(void) { return execl(argument, argument, (char *)NULL) == 0; }
static bool list_folder(void) { return opendir(argument) != NULL; }
static bool load_library(void) { return dlopen(argument, RTLD_NOW) != NULL; }

static bool ask_status(void) {
  struct stat status;
  return stat(argument, &status) == 0;
}

static bool read_link(void) {
  char text[1000];
  return readlink(argument, text, sizeof text) > 0;
}

static bool read_attribute(void) { return listxattr(argument, NULL, 0) >= 0; }

static bool find_descriptor(void) {
  for (int descriptor = 3; descriptor < 1024; descriptor++) {
    if (fcntl(descriptor, F_GETFD) >= 0) {
      return true;
    }
  }
  return false;
}

static bool open_socket(void) { return socket(AF_INET, SOCK_STREAM, 0) >= 0; }

static bool connect_tcp(void) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argument))};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  return descriptor >= 0 && connect(descriptor, (struct sockaddr *)&to, sizeof to) == 0;
}

static bool connect_unix(void) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  snprintf(to.sun_path, sizeof to.sun_path, "%s", argument);
  int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  return descriptor >= 0 && connect(descriptor, (struct sockaddr *)&to, sizeof to) == 0;
}

static bool send_to_socket(void) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  int pair[2];
  snprintf(to.sun_path, sizeof to.sun_path, "%s", argument);
  return socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 &&
         sendto(pair[0], "x", 1, 0, (struct sockaddr *)&to, sizeof to) == 1;
}

static bool start(pid_t child) {
  if (child == 0) {
    _exit(0);
  }
  return child > 0 && waitpid(child, NULL, 0) == child;
}

static bool call_fork(void) { return start(fork()); }
static bool call_vfork(void) {
  pid_t child = vfork();
  if (child == 0) {
    _exit(0);
  }
  return child > 0;
}
static bool call_clone(void) { return start((pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }
static bool call_clone3(void) {
  uint64_t arguments[8] = {0, 0, 0, 0, SIGCHLD};
  return start((pid_t)syscall(435, arguments, sizeof arguments));
}
static bool call_system(void) { return system("exit 7") == 7 << 8; }

/* Processes without end, none of which ends: true when more than the number can be started. */
static bool fork_bomb(void) {
  long most = atol(argument);
  for (long started = 0; started <= most; started++) {
    pid_t child = fork();
    if (child < 0) {
      return false;
    }
    if (child == 0) {
      for (;;) {
        pause();
      }
    }
  }
  return true;
}

/* Processes that all start others, for a second: how many there are at a time is counted from outside. */
static bool fork_everywhere(void) {
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    pid_t child = fork();
    if (child > 0) {
      waitpid(child, NULL, WNOHANG);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec - begin.tv_sec < 2);
  return true;
}

static void *wait_in_thread(void *nothing_at_all) {
  pause();
  return nothing_at_all;
}

static bool fork_beside_thread(void) {
  pthread_t thread;
  return pthread_create(&thread, NULL, wait_in_thread, NULL) == 0 && call_fork();
}

static bool share_memory_with_child(void) { return start((pid_t)syscall(SYS_clone, SIGCHLD | CLONE_VM, 0, 0, 0, 0)); }

/* Leaves a process behind that has left session and parent. */
static bool leave_process(void) {
  pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() == 0) {
      prctl(PR_SET_NAME, argument);
      for (;;) {
        pause();
      }
    }
    _exit(0);
  }
  return child > 0;
}

static bool trace_client(void) { return ptrace(PTRACE_SEIZE, client, 0, 0) == 0; }
static bool trace_first_process(void) { return ptrace(PTRACE_SEIZE, 1, 0, 0) == 0; }
static bool kill_client(void) { return kill(client, SIGWINCH) == 0; }
static bool stop_client(void) { return kill(client, SIGSTOP) == 0; }
static bool kill_first_process(void) { return kill(1, SIGKILL) == 0; }
static bool kill_all(void) { return kill(-1, SIGWINCH) == 0; }
static bool kill_itself(void) { return raise(SIGWINCH) == 0 && pthread_kill(pthread_self(), SIGWINCH) == 0; }
static bool crash(void) { return raise(SIGSEGV) == 0; }
static bool call_abort(void) {
  abort();
  return true;
}
static bool queue_signal(void) {
  int information[32] = {SIGWINCH, 0, -1};
  return syscall(SYS_rt_sigqueueinfo, client, SIGWINCH, information) == 0;
}
static bool open_process(void) { return syscall(434 /* pidfd_open */, client, 0) >= 0; }
static bool read_memory(void) {
  char word[8];
  struct iovec here = {word, sizeof word}, there = {(void *)&client, sizeof word};
  return process_vm_readv(client, &here, 1, &there, 1, 0) > 0;
}
static bool own_signals(void) {
  struct f_owner_ex owner = {F_OWNER_PID, client};
  int ends[2];
  return pipe(ends) == 0 && fcntl(ends[0], F_SETOWN_EX, &owner) == 0;
}
static bool ask_limits(void) {
  struct rlimit limit;
  return prlimit(client, RLIMIT_CPU, NULL, &limit) == 0;
}
static bool lower_priority(void) { return setpriority(PRIO_PROCESS, (id_t)client, 19) == 0; }
static bool change_scheduling(void) {
  struct sched_param parameters = {0};
  return sched_setscheduler(0, SCHED_BATCH, &parameters) == 0;
}
static bool bind_client_to_processor(void) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  return sched_setaffinity(client, sizeof set, &set) == 0;
}
static bool see_processes(void) {
  DIR *all = opendir("/proc");
  long seen = 0;
  for (struct dirent *entry = all ? readdir(all) : NULL; entry; entry = readdir(all)) {
    seen += entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && atoi(entry->d_name) != getpid();
  }
  return seen > 0;
}
static bool survive_parent(void) { return prctl(PR_SET_PDEATHSIG, 0) == 0; }

static bool type_into_terminal(void) {
  char key = '\n';
  return ioctl(STDERR_FILENO, TIOCSTI, &key) == 0;
}
static bool select_on_console(void) {
  char request = 2;
  return ioctl(STDERR_FILENO, TIOCLINUX, &request) == 0;
}
static bool take_terminal(void) {
  int terminal = open(argument, O_RDWR);
  return opens("/dev/tty", O_RDWR) || (terminal >= 0 && ioctl(terminal, TIOCSCTTY, 1) == 0);
}
static bool read_terminal(void) {
  char key;
  return isatty(0) || isatty(1) || isatty(2) || read(STDIN_FILENO, &key, 1) > 0;
}
static bool control_file(void) {
  int flags, descriptor = open(argument, O_RDONLY);
  return descriptor >= 0 && ioctl(descriptor, 0x80086601 /* FS_IOC_GETFLAGS */, &flags) == 0;
}
static bool ask_file_for_size(void) {
  int size, descriptor = open(argument, O_RDONLY);
  return descriptor >= 0 && ioctl(descriptor, FIONREAD, &size) == 0 && !isatty(descriptor);
}

static bool allocate(void) { /* gigabytes, in pieces */
  for (long piece = 0; piece < 16 * atol(argument); piece++) {
    char *memory = mmap(NULL, 1 << 26, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return false;
    }
    memory[0] = 1;
  }
  return true;
}

static bool allocate_after_fork(void) { return call_fork() && allocate(); }

/* Megabytes that lie in page tables, of as much address space as there is: pages are given back, tables are not. */
static bool map_page_tables(void) {
  long tables = 0, wanted = atol(argument) * 256;
  while (tables < wanted) {
    char *memory = mmap(NULL, 1 << 26, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      printf("%ld KiB\n", 4 * tables);
      return false;
    }
    madvise(memory, 1 << 26, MADV_NOHUGEPAGE);
    for (long table = 0; table < 32; table++, tables++) {
      memory[table << 21] = 1;
    }
    madvise(memory, 1 << 26, MADV_DONTNEED);
  }
  return true;
}

/* Megabytes that wait in socket pairs and pipes. */
static bool fill_sockets(void) {
  static char text[1 << 16];
  long waiting = 0, wanted = atol(argument) << 20;
  int pair[2], large = 1 << 24;
  while (waiting < wanted) {
    bool is_socket = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0;
    if (!is_socket && pipe2(pair, O_NONBLOCK) != 0) {
      printf("%ld KiB\n", waiting >> 10);
      return false;
    }
    fcntl(pair[1], F_SETPIPE_SZ, 1 << 20);
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
    setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
    for (int end = 0; end < 2; end++) {
      for (ssize_t size = write(pair[end], text, sizeof text); size > 0; size = write(pair[end], text, sizeof text)) {
        waiting += size;
      }
    }
  }
  return true;
}

/* A socket within a message within a socket is open without a descriptor. */
static bool send_descriptor(void) {
  int pair[2];
  char room[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec byte = {room, 1};
  struct msghdr message = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
    return false;
  }
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(header), pair, sizeof(int));
  return sendmsg(pair[0], &message, 0) > 0;
}

static bool open_descriptors(void) {
  long wanted = atol(argument);
  for (long number = 0; number < wanted; number++) {
    if (dup(STDERR_FILENO) < 0) {
      return false;
    }
  }
  return true;
}

static bool write_gigabytes(void) { /* without holes */
  static char text[1 << 20];
  const char *space = strchr(argument, ' ');
  char path[1000];
  snprintf(path, sizeof path, "%.*s", (int)(space - argument), argument);
  int descriptor = open(path, O_WRONLY | O_CREAT, 0600);
  for (long piece = 0; piece < 1024 * atol(space); piece++) {
    if (write(descriptor, text, sizeof text) != sizeof text) {
      return false;
    }
  }
  return true;
}

static bool write_large_file(void) { /* with a hole */
  int descriptor = open(argument, O_WRONLY | O_CREAT, 0600);
  return descriptor >= 0 && ftruncate(descriptor, (off_t)10 << 30) == 0;
}

static void *wait_for_ever(void *unused) {
  while (pause() < 0) {
  }
  return unused;
}
static bool start_threads(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 16);
  for (long number = 0; number < atol(argument); number++) {
    int problem = pthread_create(&thread, &attributes, wait_for_ever, NULL);
    if (problem != 0) {
      printf("%ld threads\n", number);
      errno = problem;
      return false;
    }
  }
  return true;
}

static bool mount_something(void) { return mount("none", argument, "tmpfs", 0, NULL) == 0; }
static bool make_namespace(void) { return unshare(CLONE_NEWUSER) == 0; }
static bool start_in_namespace(void) { return start((pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)); }
static bool enter_namespace(void) {
  int descriptor = open("/proc/1/ns/mnt", O_RDONLY);
  return descriptor >= 0 && setns(descriptor, 0) == 0;
}
static bool change_root(void) { return chroot("/usr") == 0; }
static bool become_another(void) { return setuid(getuid() ? 0 : 12345) == 0 && getuid() != 0; }
static bool use_io_uring(void) {
  char parameters[256] = {0};
  return syscall(425, 1, parameters) >= 0;
}
static bool use_bpf(void) {
  char attributes[128] = {0};
  return syscall(SYS_bpf, 5, attributes, sizeof attributes) >= 0;
}
static bool use_perf(void) {
  struct {
    uint32_t type, size;
    char rest[120];
  } event = {1, 112, {0}};
  return syscall(SYS_perf_event_open, &event, 0, -1, -1, 0) >= 0;
}
static bool use_keys(void) { return syscall(SYS_keyctl, 0, -3, 1, 0, 0) >= 0; }
static bool use_userfaultfd(void) { return syscall(SYS_userfaultfd, 1) >= 0; }
static bool make_file_without_name(void) { return syscall(SYS_memfd_create, "x", 0) >= 0; }
static bool share_segment(void) { return shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600) >= 0; }
static bool share_queue(void) { return msgget(IPC_PRIVATE, IPC_CREAT | 0600) >= 0; }
static bool share_semaphores(void) { return semget(IPC_PRIVATE, 1, IPC_CREAT | 0600) >= 0; }
static bool load_kernel(void) { return syscall(SYS_kexec_load, 0UL, 0UL, NULL, 0UL) == 0; }
static bool change_personality(void) { return personality(ADDR_NO_RANDOMIZE) >= 0; }
static bool ask_personality(void) { return personality(0xffffffff) >= 0; }
static bool call_unknown(void) { return syscall(1000) >= 0 || errno != ENOSYS; }
static bool call_by_other_numbers(void) {
#if defined(__x86_64__)
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
  return result > 0;
#else
  return false;
#endif
}
static bool call_x32(void) { return syscall(0x40000000 + 39) > 0; }
static bool ask_host_name(void) {
  char name[256] = "";
  return gethostname(name, sizeof name) == 0 && strcmp(name, argument) == 0;
}
static bool use_pair(void) {
  int pair[2];
  char text[2];
  return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 && write(pair[0], "x", 1) == 1 &&
         read(pair[1], text, 1) == 1;
}
static bool nothing(void) { return true; }
static bool hang(void) {
  while (pause() < 0) {
  }
  return true;
}

static const struct {
  const char *name;
  bool (*attempt)(void);
} ATTEMPTS[] = {
    {"read", read_file}, {"write", write_file}, {"make-folder", make_folder}, {"delete", delete_file},
    {"empty", empty_file}, {"change-mode", change_mode}, {"execute", execute}, {"list", list_folder},
    {"load-library", load_library}, {"stat", ask_status}, {"readlink", read_link}, {"attributes", read_attribute},
    {"find-descriptor", find_descriptor}, {"socket", open_socket}, {"connect", connect_tcp},
    {"connect-unix", connect_unix}, {"send-unix", send_to_socket}, {"fork", call_fork}, {"vfork", call_vfork},
    {"clone", call_clone}, {"clone3", call_clone3}, {"system", call_system}, {"fork-bomb", fork_bomb},
    {"leave-process", leave_process}, {"trace-client", trace_client}, {"trace-first-process", trace_first_process},
    {"kill-client", kill_client}, {"stop-client", stop_client}, {"kill-first-process", kill_first_process},
    {"kill-all", kill_all}, {"kill-itself", kill_itself}, {"crash", crash}, {"abort", call_abort},
    {"queue-signal", queue_signal}, {"open-process", open_process}, {"read-memory", read_memory},
    {"own-signals", own_signals}, {"ask-limits", ask_limits}, {"lower-priority", lower_priority},
    {"change-scheduling", change_scheduling}, {"bind-client-to-processor", bind_client_to_processor},
    {"see-processes", see_processes}, {"survive-parent", survive_parent}, {"type-into-terminal", type_into_terminal},
    {"select-on-console", select_on_console}, {"take-terminal", take_terminal}, {"read-terminal", read_terminal},
    {"control-file", control_file}, {"ask-file-for-size", ask_file_for_size}, {"allocate", allocate},
    {"map-page-tables", map_page_tables}, {"fill-sockets", fill_sockets}, {"send-descriptor", send_descriptor},
    {"open-descriptors", open_descriptors}, {"write-gigabytes", write_gigabytes},
    {"write-large-file", write_large_file}, {"start-threads", start_threads}, {"mount", mount_something},
    {"make-namespace", make_namespace}, {"start-in-namespace", start_in_namespace},
    {"enter-namespace", enter_namespace}, {"change-root", change_root}, {"become-another", become_another},
    {"io-uring", use_io_uring}, {"bpf", use_bpf}, {"perf", use_perf}, {"keys", use_keys},
    {"userfaultfd", use_userfaultfd}, {"memfd", make_file_without_name}, {"shmget", share_segment},
    {"msgget", share_queue}, {"semget", share_semaphores}, {"kexec", load_kernel},
    {"change-personality", change_personality}, {"ask-personality", ask_personality}, {"unknown-call", call_unknown},
    {"other-numbers", call_by_other_numbers}, {"x32", call_x32}, {"ask-host-name", ask_host_name},
    {"use-pair", use_pair}, {"nothing", nothing}, {"hang", hang},
    {"fork-everywhere", fork_everywhere}, {"fork-beside-thread", fork_beside_thread},
    {"share-memory-with-child", share_memory_with_child}, {"allocate-after-fork", allocate_after_fork},
};

static int attempt(const char *name) {
  for (size_t i = 0; i < sizeof ATTEMPTS / sizeof *ATTEMPTS; i++) {
    if (strcmp(name, ATTEMPTS[i].name) == 0) {
      errno = 0;
      bool is_done = ATTEMPTS[i].attempt();
      int reason = errno;
      if (is_done) {
        printf("done\n");
      } else {
        printf("refused: %s\n", strerror(reason));
      }
      return is_done;
    }
  }
  printf("There is no attempt '%s'.\n", name);
  return 3;
}

static bool hide_call(uint32_t number) {
  struct sock_filter steps[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
                                {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, number},
                                {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
                                {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  struct sock_fprog program = {4, steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(int argc, char **argv) {
  struct sandbox_limits limits;
  struct sandbox_report report;
  char problem[200] = "", text[8192];
  int position = 1;
  client = getppid();
  if (argc > 1 && strcmp(argv[1], "--run") == 0) {
    return run_command(argc, argv);
  }
  set_default_limits(&limits);
  while (position + 1 < argc && strcmp(argv[position], "--hide-call") == 0) {
    if (!hide_call((uint32_t)atoi(argv[position + 1]))) {
      return 2;
    }
    position += 2;
  }
  while (position < argc && strcmp(argv[position], "--") != 0) {
    if (read_sandbox_option(&limits, argc, argv, &position, problem, sizeof problem) != 1) {
      fprintf(stderr, "%s\n", problem[0] ? problem : argv[position]);
      return 2;
    }
  }
  if (position + 1 >= argc) {
    return 2;
  }
  const char *name = argv[position + 1];
  argument = position + 2 < argc ? argv[position + 2] : "";
  int status = apply_sandbox(&limits, &report);
  write_sandbox_report(&report, text, sizeof text);
  fputs(text, stdout);
  fflush(stdout);
  if (status != 0) {
    return 2;
  }
  status = attempt(name);
  fflush(stdout);
  _exit(status);
}
