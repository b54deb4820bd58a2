/* What the parts of the sandbox for Linux know of each other. */
#ifndef FMILIN_SANDBOX_LINUX_H
#define FMILIN_SANDBOX_LINUX_H

#include "sandbox_posix.h"

#include <sys/types.h>

enum path_access { MAY_READ, MAY_WRITE, MAY_USE_DEVICE };

struct allowed_path {
  const char *path;
  enum path_access access;
  bool is_system; /* from the list of the system's own paths: a symbolic link stays one */
};

enum { MAX_ALLOWED_PATHS = 2 * SANDBOX_MAX_PATHS + 64 };

/* The paths that the limits allow, those of the system included; folders before what lies in them. Returns how many. */
size_t list_allowed_paths(const struct sandbox_limits *limits, struct allowed_path *paths);

bool is_active(const struct sandbox_report *report, enum protection protection);

/* Whether the kernel is this version or later; what distributions carry back does not count. */
bool is_kernel_at_least(int major, int minor);

/* Moves into a root that holds the allowed paths alone, and into the scratch folder. Needs CAP_SYS_ADMIN here. */
void enter_own_root(const struct sandbox_limits *limits, const struct allowed_path *paths, size_t count,
                    struct sandbox_report *report);

void restrict_by_landlock(const struct sandbox_limits *limits, const struct allowed_path *paths, size_t count,
                          struct sandbox_report *report);

/* The last of all: what it refuses includes calls that the others need. `may_copy`: fork passes, as far as it sees. */
void filter_system_calls(const struct sandbox_limits *limits, bool may_copy, struct sandbox_report *report);

/*
 * Copies of the host (--copies). The keeper is the parent of the one that works, ends as that ends, and takes over the
 * copies of others that have ended. It holds nothing, and no code of the FMU runs in it.
 */
enum { MAX_COPIES = 3 }; /* processes below the keeper: the one that works, one that waits, one that is about to end */

struct keeper {
  pid_t process;
  volatile pid_t *active; /* the one that works, in a page that all share */
};

void start_keeper(void);                 /* returns in the host */
const struct keeper *find_keeper(void);  /* NULL: there is none, and no copies */

/* Called in this order: before the fork; outside; in the host, before the other filter; outside. */
void prepare_copies(const struct sandbox_limits *limits);
int receive_listener(void); /* a descriptor where the kernel asks; -1 where there are no copies */
bool ask_about_copies(void);
void decide_about_copy(int listener, pid_t above, uint64_t bytes);

/* Ends this process together with its parent, or at once where that has ended. */
void end_with_parent(pid_t parent_outside);

/* Gives up privileges and all descriptors. */
void be_harmless(void);

/*
 * A control group for the host, made by the process that waits for it, which is not in it and removes it at the end.
 * `folder` is empty where there is none.
 */
void make_cgroup(const struct sandbox_limits *limits, char *folder, size_t size, struct sandbox_report *report);
void join_cgroup(const char *folder, struct sandbox_report *report);
void remove_cgroup(const char *folder);

#endif
