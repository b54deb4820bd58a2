/* Tries what an FMU must not be able to do, and prints one line for each attempt: harmless, and only in the sandbox.

   FMILIN_ATTACKS holds its targets: the process of fmilin, ports, and paths. It tries when it is instantiated, or while
   its library is loaded where FMILIN_ATTACKS_AT_LOAD is set. See tests/attacks.py. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
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
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char text[1 << 20], path[500], secret[100];

static void say(const char *attempt, int done) {
    int why = errno;
    printf("attempt: %s: %s\n", attempt, done ? "SUCCEEDED" : why ? strerror(why) : "nothing is there");
    fflush(stdout);
    errno = 0;
}

static int closed(int descriptor, int result) { int why = errno; close(descriptor); errno = why; return result; }

static int holds_secret(const char *file) {
    int f = open(file, O_RDONLY);
    if (f < 0) return 0;
    ssize_t size = read(f, text, sizeof text);
    return closed(f, size > 0 && memmem(text, size, secret, strlen(secret)) != 0);
}

static int appends(const char *file) {
    int f = open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
    return f < 0 ? 0 : closed(f, write(f, "FMU\n", 4) == 4);
}

static int reaches_port(int type, int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int s = socket(AF_INET, type, 0);
    return s < 0 ? 0 : closed(s, connect(s, (void *)&to, sizeof to) == 0 && send(s, "x", 1, 0) == 1);
}

static int reaches_socket(const char *name, int abstract) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    strcpy(to.sun_path + abstract, name);
    int s = socket(AF_UNIX, SOCK_STREAM, 0), size = offsetof(struct sockaddr_un, sun_path) + abstract + strlen(name);
    return s < 0 ? 0 : closed(s, connect(s, (void *)&to, size) == 0);
}

static int sends_through_a_pair(const char *name) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int pair[2];
    strcpy(to.sun_path, name);
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair)) return 0;
    close(pair[1]);
    return closed(pair[0], sendto(pair[0], "x", 1, 0, (void *)&to, sizeof to) == 1);
}

static int owns_signals(int maker) {
    struct f_owner_ex owner = {F_OWNER_PID, maker};
    int ends[2];
    if (pipe(ends)) return 0;
    int done = fcntl(ends[0], F_SETOWN_EX, &owner) == 0 && fcntl(ends[0], F_SETSIG, SIGWINCH) == 0;
    int why = errno;
    close(ends[0]), close(ends[1]);
    errno = why;
    return done;
}

static int finds_secret_in_its_memory(void) { /* what it looks for lies masked in its own memory */
    char line[512], masked[100];
    size_t length = strlen(secret);
    int found = 0, memory = open("/proc/self/mem", O_RDONLY);
    FILE *maps = fopen("/proc/self/maps", "r");
    for (size_t i = 0; i <= length; i++) masked[i] = secret[i] ? secret[i] ^ 1 : 0;
    memset(secret, 0, sizeof secret);
    memset(text, 0, sizeof text);
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long at, end;
        char rights[8];
        if (sscanf(line, "%lx-%lx %4s", &at, &end, rights) < 3 || strncmp(rights, "rw", 2)) continue;
        for (; at < end; at += sizeof text / 2) {
            if (at >= (unsigned long)text && at < (unsigned long)text + sizeof text) continue;
            ssize_t size = pread(memory, text, sizeof text < end - at ? sizeof text : end - at, at);
            for (ssize_t i = 0; i + (ssize_t)length <= size; i++) {
                size_t k = 0;
                while (k < length && (text[i + k] ^ 1) == masked[k]) k++;
                found += k == length;
            }
        }
    }
    if (maps) fclose(maps);
    close(memory);
    errno = 0;
    return found;
}

static int is_restricted(void) {
    char line[200];
    int mode = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "Seccomp: %d", &mode);
    if (status) fclose(status);
    return mode == 2;
}

static void attack(void) {
    int maker, tcp, udp;
    char home[200], other[200], named[200], abstract[100];
    const char *targets = getenv("FMILIN_ATTACKS");
    if (!targets || !is_restricted()) {
        printf("attempt: none outside the sandbox: SUCCEEDED\n");
        return;
    }
    if (sscanf(targets, "%d %d %d %199s %199s %199s %99s %99s", &maker, &tcp, &udp, home, other, named, abstract, secret) != 8)
        return;
    for (char *c = secret; *c; c++) *c ^= 1; /* it is handed over masked */
    setvbuf(stdout, 0, _IOLBF, 0);
    errno = 0;

    say("read a secret from the environment", getenv("FMILIN_SECRET") != 0);
    say("read it from /proc/self/environ", holds_secret("/proc/self/environ"));
    sprintf(path, "/proc/%d/environ", maker); say("read it from the environment of fmilin", holds_secret(path));
    sprintf(path, "/proc/%d/environ", getppid()); say("read it from the environment of its parent", holds_secret(path));
    sprintf(path, "%s/secret.txt", home); say("read a file at home", holds_secret(path));
    DIR *listed = opendir(home);
    say("list the files at home", listed != 0);
    struct stat status;
    sprintf(path, "%s/secret.txt", home); say("ask whether a file at home is there", stat(path, &status) == 0);
    say("ask whether it may read a file at home", access(path, R_OK) == 0);
    sprintf(path, "%s/shortcut", home); say("read where a link at home leads", readlink(path, text, sizeof text) > 0);
    sprintf(path, "%s/library.so", home); say("load a library at home", dlopen(path, RTLD_NOW) != 0);
    errno = EACCES;
    say("read the connections of the machine", open("/proc/net/tcp", O_RDONLY) >= 0);
    say("read the keys of the kernel", open("/proc/keys", O_RDONLY) >= 0);
    say("read the command line of the kernel", open("/proc/cmdline", O_RDONLY) >= 0);
    int usr = open("/usr", O_RDONLY), flags = 0;
    say("ask for the attributes of a folder by ioctl", ioctl(usr, 0x80086601 /* FS_IOC_GETFLAGS */, &flags) == 0);
    close(usr);
    say("read the passwords of the system", open("/etc/shadow", O_RDONLY) >= 0);
    sprintf(path, "%s/.bashrc", home); say("append to ~/.bashrc", appends(path));
    say("write to /tmp", appends("/tmp/fmilin-fmu-was-here"));
    say("write to /dev/shm", appends("/dev/shm/fmilin-fmu-was-here"));
    sprintf(path, "%s/result", other); say("delete a file in another run's folder", unlink(path) == 0);
    sprintf(path, "%s.renamed", other); say("rename another run's folder", rename(other, path) == 0);
    sprintf(path, "%s/secret.txt", home); say("empty a file at home", truncate(path, 0) == 0);
    say("change the mode of a file at home", chmod(path, 0666) == 0);
    say("change the time of a file at home", utimensat(AT_FDCWD, path, 0, 0) == 0);
    sprintf(path, "%s/link", home); say("make a link at home", symlink("/etc", path) == 0);
    say("open a TCP connection", reaches_port(SOCK_STREAM, tcp));
    say("send a UDP message", reaches_port(SOCK_DGRAM, udp));
    say("connect to a unix socket", reaches_socket(named, 0));
    say("connect to an abstract unix socket", reaches_socket(abstract, 1));
    say("send through a socket pair to a path", sends_through_a_pair(named));
    say("trace fmilin", ptrace(PTRACE_SEIZE, maker, 0, 0) == 0);
    char word[8];
    struct iovec here = {word, 8}, there = {(void *)environ, 8};
    say("read fmilin's memory", process_vm_readv(maker, &here, 1, &there, 1, 0) > 0);
    sprintf(path, "/proc/%d/mem", getppid()); say("open its parent's memory", open(path, O_RDONLY) >= 0);
    say("signal fmilin", kill(maker, SIGWINCH) == 0);
    say("stop fmilin", kill(maker, SIGSTOP) == 0);
    say("end fmilin", kill(maker, SIGKILL) == 0);
    say("stop its parent", getppid() > 0 ? kill(getppid(), SIGSTOP) == 0 : (errno = ESRCH, 0));
    say("signal the first process", kill(1, 0) == 0);
    say("signal all processes", kill(-1, 0) == 0);
    say("start a session of its own", setsid() >= 0);
    say("signal fmilin by queue", syscall(SYS_rt_sigqueueinfo, maker, SIGWINCH, (int[32]){SIGWINCH, 0, -1}) == 0);
    int by = syscall(SYS_pidfd_open, getppid(), 0);
    say("signal its parent by descriptor", by >= 0 && syscall(SYS_pidfd_send_signal, by, SIGWINCH, 0, 0) == 0);
    say("have fmilin signalled through a pipe", owns_signals(maker));
    struct rlimit limit;
    say("ask for fmilin's limits", prlimit(maker, RLIMIT_CPU, 0, &limit) == 0);
    struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
    say("raise its limit of memory", setrlimit(RLIMIT_AS, &unlimited) == 0);
    say("raise its limit of open files", setrlimit(RLIMIT_NOFILE, &(struct rlimit){100000, 100000}) == 0);
    say("raise the limit of core files", setrlimit(RLIMIT_CORE, &unlimited) == 0);
    say("raise the limit of the size of files", setrlimit(RLIMIT_FSIZE, &unlimited) == 0);
    say("lower the priority of fmilin", setpriority(PRIO_PROCESS, maker, 19) == 0);
    sprintf(path, "/proc/%d/fd/1", maker); say("write into fmilin's standard output", appends(path));
    sprintf(path, "/proc/%d/fd/1", getppid()); say("write into its parent's standard output", appends(path));
    sprintf(path, "/proc/%d/cmdline", maker); say("read fmilin's command line", open(path, O_RDONLY) >= 0);
    int seen = 0;
    DIR *all = opendir("/proc");
    for (struct dirent *entry; all && (entry = readdir(all));) seen += entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
    errno = 0;
    say("see processes besides its own", seen > 2);
    say("mount", mount("none", home, "tmpfs", 0, 0) == 0);
    say("make a namespace", unshare(CLONE_NEWUSER) == 0);
    int child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, 0, 0);
    say("make a namespace with a process", child > 0);
    say("use io_uring", syscall(SYS_io_uring_setup, 1, (char[256]){0}) >= 0);
    say("use bpf", syscall(SYS_bpf, 5, (char[128]){0}, 128) >= 0);
    struct { int type, size; char rest[120]; } event = {1, 112};
    say("use perf", syscall(SYS_perf_event_open, &event, 0, -1, -1, 0) >= 0);
    say("use the kernel's keys", syscall(SYS_keyctl, 0, -3, 1, 0, 0) >= 0);
    say("hide memory in a file without a name", syscall(SYS_memfd_create, "x", 0) >= 0);
    int shared = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600);
    say("hide memory in a shared segment", shared >= 0);
    say("open the terminal", open("/dev/tty", O_RDWR) >= 0);
    char key = '\n';
    say("type into the terminal", ioctl(2, TIOCSTI, &key) == 0);
    say("outlive its parent", prctl(PR_SET_PDEATHSIG, 0) == 0);
    say("become another user", setuid(getuid() ? 0 : 12345) == 0);
    int strange = 0;
    struct stat file;
    for (int d = 3; d < 1024; d++) {
        if (fstat(d, &file) || S_ISDIR(file.st_mode)) continue;
        if (S_ISREG(file.st_mode) && file.st_nlink == 0) continue; /* the memory that it shares with fmilin */
        if (S_ISFIFO(file.st_mode)) continue; /* the pipes to fmilin */
        strange++;
    }
    errno = 0;
    say("find a file that fmilin has open", strange > 0);
    say("find the secret in its own memory", finds_secret_in_its_memory());

    /* what has to work */
    int ends[2];
    sprintf(path, "%s/own", getenv("TMPDIR"));
    if (!appends(path) || raise(SIGWINCH) || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        printf("attempt: work at all, which was refused: SUCCEEDED\n");
    /* a grandchild that wants to stay */
    child = fork();
    if (child) say("start a process", child > 0);
    if (child == 0) {
        setsid();
        if (fork() == 0) {
            prctl(PR_SET_NAME, "fmilin-stayer");
            for (;;) pause();
        }
        _exit(0);
    }
    waitpid(child, 0, 0);
}
__attribute__((constructor)) static void at_load(void) { if (getenv("FMILIN_ATTACKS_AT_LOAD")) attack(); }
#define ON_INSTANTIATE if (!getenv("FMILIN_ATTACKS_AT_LOAD")) attack();
#include "spring.h"
