/* One attack, which FMILIN_ATTACK names: on fmilin itself, on the machine, or on what it may take. See tests/attacks.py.

   Whoever reads its numbers waits for x'' = u - x; harmless outside the sandbox, where it tries nothing. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

enum { DESCRIPTORS = 256 };
static char buffer[1 << 16];

static int is_attack(const char *name) {
    const char *asked = getenv("FMILIN_ATTACK");
    char line[200];
    int mode = 0;
    if (!asked || strcmp(asked, name)) return 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "Seccomp: %d", &mode);
    if (status) fclose(status);
    return mode == 2;
}

static void tell(const char *attempt, int done) {
    int why = errno;
    printf("attempt: %s: %s\n", attempt, done ? "SUCCEEDED" : why ? strerror(why) : "nothing is there");
    fflush(stdout);
    errno = 0;
}

static void mark(void) { prctl(PR_SET_NAME, getenv("FMILIN_MARK")); }

static void *spin(void *unused) { for (volatile long i = 0;; i++) {} return unused; }

/* Shared pages: everything is overwritten, the place of the progress too, and then nothing returns. */
static void overwrite_shared_pages(void) {
    char line[512], rights[8];
    unsigned long from, to;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) == 3 && !strcmp(rights, "rw-s"))
            for (unsigned long at = from; at < to && at < from + (1 << 20); at++) *(char *)at = (char)(at * 31 + 7);
    spin(0);
}

static void bomb(void) {
    mark();
    for (;;) fork();
}

static void leave_threads(void) {
    pthread_t thread;
    mark();
    for (int i = 0; i < 4; i++) pthread_create(&thread, 0, spin, 0);
}

static void write_to_all(const void *bytes, size_t size) {
    for (int d = 3; d < DESCRIPTORS; d++) if (write(d, bytes, size)) {}
}

/* What a process that unpickles answers would run. */
static void pickle(void) {
    int size = sprintf(buffer, "cos\nsystem\n(S'touch %s'\ntR.", getenv("FMILIN_CANARY"));
    write_to_all(buffer, size);
}

static void take_terminal(void) {
    char typed[100] = "", key = '\n';
    struct termios state;
    int opened[4] = {0, 1, 2, open("/dev/tty", O_RDWR | O_NONBLOCK)};
    tell("open the terminal", opened[3] >= 0);
    for (int i = 0; i < 4; i++) {
        int flags = fcntl(opened[i], F_GETFL);
        fcntl(opened[i], F_SETFL, flags | O_NONBLOCK);
        tell("read what the user types", read(opened[i], typed, sizeof typed) > 0);
        fcntl(opened[i], F_SETFL, flags);
        tell("ask for the terminal's settings", tcgetattr(opened[i], &state) == 0);
        state.c_lflag &= ~(ECHO | ICANON);
        tell("switch the terminal's echo off", tcsetattr(opened[i], TCSANOW, &state) == 0);
        tell("type into the terminal", ioctl(opened[i], TIOCSTI, &key) == 0);
        tell("take the terminal", ioctl(opened[i], TIOCSCTTY, 1) == 0);
    }
}

static void write_beside(void) {
    const char *folder = getenv("FMILIN_CANARY");
    const char *names[] = {"plant.py", "numpy.py", "plant.mat", "spoiled.fmu"};
    for (int i = 0; i < 4; i++) {
        snprintf(buffer, sizeof buffer, "%s/%s", folder, names[i]);
        FILE *file = fopen(buffer, "w");
        tell("write a file beside that of the results", file != 0);
        if (file) fclose(file);
    }
}

struct answer { uint32_t sequence; int32_t status; uint32_t instruction, size; uint64_t repetition; uint32_t dropped, rest; };

static void answer_falsely(int how) {
    struct answer answer = {0, 0, 1, 0, 1, 0, 0};
    for (uint32_t n = 0; n < 64; n++) {
        answer.sequence = how == 0 ? n * 977 : n;
        if (how == 1) answer.size = UINT32_MAX;
        if (how == 2) answer.size = 1 << 18, answer.status = -1;
        if (how == 3) answer.instruction = UINT32_MAX, answer.repetition = UINT64_MAX, answer.status = INT32_MIN;
        if (how == 4) answer.dropped = UINT32_MAX, answer.status = 3;
        write_to_all(&answer, how == 5 ? sizeof answer - 1 : sizeof answer);
    }
}

/* Writes one byte of an answer at a time, so that something always comes. */
static void answer_slowly(void) {
    for (;;) {
        write_to_all("\0", 1);
        usleep(20000);
    }
}

/* Reads the answers away before fmilin does. */
static void *drain(void *unused) {
    int ends[DESCRIPTORS], count = 0;
    for (int d = 3; d < DESCRIPTORS; d++) {
        struct stat file;
        if (fstat(d, &file) || !S_ISFIFO(file.st_mode)) continue;
        sprintf(buffer, "/proc/self/fd/%d", d);
        int end = open(buffer, O_RDONLY | O_NONBLOCK);
        if (end >= 0) ends[count++] = end;
    }
    for (;;) for (int i = 0; i < count; i++) if (read(ends[i], buffer, sizeof buffer)) {}
    return unused;
}

static void drain_answers(void) {
    pthread_t thread;
    pthread_create(&thread, 0, drain, 0);
    usleep(200000);
}

static void print_without_end(void) {
    for (;;) if (write(1, "more\nmore\nmore\n", 15)) {}
}

/* Opens the other end of every pipe: whoever waits until it is closed waits for this process. */
static void hold_pipes(void) {
    mark();
    for (int d = 0; d < 20; d++) {
        sprintf(buffer, "/proc/self/fd/%d", d);
        open(buffer, O_RDWR | O_NONBLOCK);
    }
    spin(0);
}

static void stop_itself(void) { kill(getpid(), SIGSTOP); }
static void close_all(void) { for (int d = 0; d < DESCRIPTORS; d++) close(d); }

static void dump_core(void) {
    struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
    tell("raise the limit of core files", setrlimit(RLIMIT_CORE, &unlimited) == 0);
    tell("raise the limit of memory", setrlimit(RLIMIT_AS, &unlimited) == 0);
    if (chdir(getenv("TMPDIR"))) {}
    abort();
}

static void report(const char *what, long amount, const char *unit, long most) {
    printf("amount: %s: %ld %s\n", what, amount, unit);
    errno = 0;
    tell(what, amount > most);
}

static void take_memory(void) {
    long kib = 0;
    int pair[2];
    while (kib < 1 << 24) {
        char *piece = mmap(0, 1 << 22, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (piece == MAP_FAILED) break;
        for (long i = 0; i < 1 << 22; i += 4096) piece[i] = 1;
        kib += 1 << 12;
    }
    report("take more memory than it may", kib, "KiB", 1 << 20);
    for (kib = 0;;) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) && pipe2(pair, O_NONBLOCK)) break;
        fcntl(pair[1], F_SETPIPE_SZ, 1 << 20);
        int large = 1 << 24;
        for (int end = 0; end < 2; end++) {
            setsockopt(pair[end], SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
            for (ssize_t n; (n = write(pair[end], buffer, sizeof buffer)) > 0;) kib += n >> 10;
        }
    }
    report("hide memory in socket pairs and pipes", kib, "KiB", 1 << 18);
}

static void take_page_tables(void) {
    long tables = 0;
    while (tables < 1 << 20) {
        char *memory = mmap(0, 1 << 26, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) break;
        madvise(memory, 1 << 26, MADV_NOHUGEPAGE);
        for (long table = 0; table < 32; table++, tables++) memory[table << 21] = 1;
        madvise(memory, 1 << 26, MADV_DONTNEED);
    }
    report("hide memory in page tables", 4 * tables, "KiB", 1 << 18);
}

static void fill_disk(void) {
    long kib = 0;
    for (int i = 0; i < 1000; i++) {
        sprintf(buffer, "%s/full%d", getenv("TMPDIR"), i);
        int file = open(buffer, O_WRONLY | O_CREAT, 0600);
        long before = kib;
        for (ssize_t n; file >= 0 && (n = write(file, buffer, sizeof buffer)) > 0;) kib += n >> 10;
        if (kib == before) break;
    }
    report("fill the disk", kib, "KiB", 1 << 19);
    long count = 0;
    for (; count < 1000000; count++) {
        sprintf(buffer, "%s/%ld", getenv("TMPDIR"), count);
        if (symlink("to", buffer)) break;
    }
    report("use up the files of the disk", count, "files", 1 << 16);
}

static const struct { const char *name; void (*run)(void); } ATTACKS[] = {
    {"pages", overwrite_shared_pages}, {"bomb", bomb}, {"threads", leave_threads}, {"pickle", pickle},
    {"terminal", take_terminal}, {"beside", write_beside}, {"slow", answer_slowly}, {"drain", drain_answers},
    {"print", print_without_end}, {"hold", hold_pipes}, {"stop", stop_itself}, {"close", close_all},
    {"core", dump_core}, {"memory", take_memory}, {"tables", take_page_tables}, {"disk", fill_disk},
};

static void attack(const char *stage) {
    char name[50];
    for (size_t i = 0; i < sizeof ATTACKS / sizeof *ATTACKS; i++) {
        sprintf(name, "%s%s", stage, ATTACKS[i].name);
        if (is_attack(name)) ATTACKS[i].run();
    }
    for (int how = 0; how < 6; how++) {
        sprintf(name, "%sanswer%d", stage, how);
        if (is_attack(name)) answer_falsely(how);
    }
}
__attribute__((constructor)) static void at_load(void) { attack("load-"); }
__attribute__((destructor)) static void at_unload(void) {
    attack("unload-");
    if (is_attack("unload-hang")) { close_all(); spin(0); }
}
#define ON_INSTANTIATE attack("");
#define ON_GET_DERIVATIVES { static int done; if (!done++) attack("later-"); }
#include "spring.h"
