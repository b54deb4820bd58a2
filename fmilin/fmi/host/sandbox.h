/*
 * The sandbox of the FMU host: what the process may reach and take, applied after exec and before foreign code is loaded.
 *
 * sandbox.c reads the limits from the command line and writes the report; sandbox_linux.c, sandbox_macos.c and
 * sandbox_windows.c apply the limits as far as the system allows. A protection that the system does not offer is
 * reported, not fatal, unless `--require` names it.
 *
 * The environment is that of exec: the client passes the few variables that the code of an FMU may see.
 */
#ifndef FMILIN_SANDBOX_H
#define FMILIN_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SANDBOX_MAX_PATHS = 256, SANDBOX_MAX_DESCRIPTORS = 8, SANDBOX_MAX_DETAIL = 120 };

/*
 * Options of the command line, in any order, after the program's name and before other arguments:
 *
 *   --memory BYTES         size of the address space of each process
 *   --file-size BYTES      size of each file that is written
 *   --files N              open descriptors of each process
 *   --processes N          processes besides the host; 0 (the default): it starts no process, threads only
 *   --copies BYTES         copies of the host may wait (COPY_HOST): the kernel asks the process outside about each
 *                          new process, which allows three at a time, none of which starts a program; from the first on
 *                          BYTES is the size of the address space of each. 0 (the default): none
 *   --threads N            threads of all processes together, where the system counts them for this sandbox alone
 *   --read PATH            a file or folder that may be read and executed, besides the system's libraries
 *   --write PATH           a folder, or a file that exists, that may be written, too
 *   --scratch FOLDER       an empty folder to write to, the working folder: in memory where mounts are allowed
 *   --scratch-size BYTES   all that the scratch folder holds, where it is in memory
 *   --keep-descriptor N    a descriptor of the protocol; all others but 1 and 2 are closed, 0 becomes /dev/null
 *                          unless it is named
 *   --client-descriptor N  as --keep-descriptor; when the other end, which the client alone holds, is closed, all ends;
 *                          on Windows the handle of a job object, which the host enters and closes
 *   --network              sockets are allowed
 *   --local-sockets        sockets between processes of this machine are allowed, as wine needs them: only in a root of
 *                          its own, where there are none but those of the sandbox
 *   --require NAME         a protection without which nothing is run
 *   --no-restrictions      files, sockets, processes and system calls as the user has them; memory is still bounded
 */
struct sandbox_limits {
  uint64_t memory, file_size, files, processes, copies, threads, scratch_size; /* UINT64_MAX: no limit */
  const char *read[SANDBOX_MAX_PATHS];
  const char *write[SANDBOX_MAX_PATHS];
  size_t read_count, write_count;
  const char *scratch; /* NULL: none */
  int descriptors[SANDBOX_MAX_DESCRIPTORS];
  size_t descriptor_count;
  int client_descriptor;     /* -1: none */
  uint32_t required;         /* bit number: enum protection */
  bool network, local_sockets, no_restrictions;
};

/* Protections, in the order in which they are applied and reported; the comment says what holds when one is active. */
enum protection {
  SANDBOX_DESCRIPTORS,       /* descriptors of the client are closed, and none of 0, 1, 2 is a terminal */
  SANDBOX_SESSION,           /* a session of its own, without a controlling terminal */
  SANDBOX_USERS,             /* a user namespace: privileges mean nothing outside */
  SANDBOX_PROCESSES_HIDDEN,  /* a process namespace: other processes are neither seen nor reached, none is left behind */
  SANDBOX_NETWORK,           /* a network namespace without interfaces */
  SANDBOX_IPC,               /* an IPC namespace: shared segments and queues of others are not there */
  SANDBOX_HOST_NAME,         /* a UTS namespace: the machine's name is not there */
  SANDBOX_ROOT,              /* a root of its own: other paths do not exist, and nothing about them can be asked */
  SANDBOX_PROC,              /* /proc shows the processes of the sandbox, or nothing */
  SANDBOX_SCRATCH_SIZE,      /* the sum of what is written is bounded */
  SANDBOX_CGROUP,            /* memory of the kernel on behalf of the processes is bounded with theirs (cgroup v2) */
  SANDBOX_MEMORY,            /* the address space of each process is bounded, with it the page tables */
  SANDBOX_FILES,             /* open descriptors, and with them memory of sockets and pipes, are bounded */
  SANDBOX_FILE_SIZE,         /* files that are written are bounded */
  SANDBOX_THREADS,           /* threads and processes are bounded */
  SANDBOX_CORE,              /* a crash leaves no core file */
  SANDBOX_QUEUES,            /* locked memory, message queues and pending signals are bounded */
  SANDBOX_NO_NEW_PRIVILEGES, /* programs that are started give no more rights */
  SANDBOX_CAPABILITIES,      /* no capabilities */
  SANDBOX_LANDLOCK_FILES,    /* paths that are not allowed cannot be opened, written, emptied (Linux 6.2) */
  SANDBOX_LANDLOCK_DEVICES,  /* nor devices controlled (Linux 6.10) */
  SANDBOX_LANDLOCK_NETWORK,  /* nor TCP used (Linux 6.7) */
  SANDBOX_LANDLOCK_SCOPE,    /* nor signals sent out, nor abstract sockets reached (Linux 6.12) */
  SANDBOX_SYSTEM_CALLS,      /* a filter of system calls */
  SANDBOX_NO_NEW_PROCESSES,  /* no program is started, and no process but copies of the host (--copies) */
  SANDBOX_JOB,               /* Windows: a job object bounds memory and processes, and ends with the host */
  SANDBOX_PROTECTIONS
};

enum protection_state {
  PROTECTION_ABSENT,  /* of another system */
  PROTECTION_ACTIVE,
  PROTECTION_OFF,     /* the command line asks for it */
  PROTECTION_MISSING, /* the system does not offer it, or refuses */
};

struct sandbox_report {
  struct {
    enum protection_state state;
    char detail[SANDBOX_MAX_DETAIL]; /* by what means, or why not; a line of printable ASCII */
  } protections[SANDBOX_PROTECTIONS];
};

/* Limits of a host to which the command line says nothing: 256 files, scratch 256 MiB, 512 threads, no processes. */
void set_default_limits(struct sandbox_limits *limits);

/*
 * Reads the option at argv[*position], if it is one of the sandbox, and moves *position behind it. Paths are kept as
 * pointers into argv. Returns 1 for an option, 0 for something else, -1 with a sentence in `problem`.
 */
int read_sandbox_option(struct sandbox_limits *limits, int argc, char *const *argv, int *position, char *problem,
                        size_t problem_size);

/*
 * Applies the limits. Call it with one thread, all output flushed, before foreign code is loaded. Returns 0, or -1 if
 * a required protection is missing: then end the process.
 *
 * On Linux and macOS the function forks and returns in a descendant. The process that was started waits for it, ends in
 * the same way (status or signal), and ends it when it is ended itself or when the client goes.
 */
int apply_sandbox(const struct sandbox_limits *limits, struct sandbox_report *report);

/* The name of a protection as in the report and for --require: "landlock-files". */
const char *protection_name(enum protection protection);

/*
 * Writes a line for each protection that this system could have: `name=active`, `name=off` or `name=missing`, then
 * `: detail` if there is one. Returns the length, as snprintf does; 8 KiB are always enough.
 */
size_t write_sandbox_report(const struct sandbox_report *report, char *text, size_t size);

/* For the systems' files: sets a line of the report; the format is that of printf. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
void report_protection(struct sandbox_report *report, enum protection protection, enum protection_state state,
                       const char *format, ...);

/* Whether all protections that the limits require are active. */
bool are_required_active(const struct sandbox_limits *limits, const struct sandbox_report *report);

/*
 * `host --run [OPTIONS] [--report N] -- COMMAND...`: applies the sandbox and replaces the process by a program, such as
 * a compiler. Takes the arguments of main. The report goes to descriptor N. Returns an exit status when that fails.
 */
int run_command(int argc, char **argv);

#endif
