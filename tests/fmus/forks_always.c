/* Starts a process at every evaluation; each of them sleeps, and nobody waits for it. */
#include <unistd.h>
#define ON_GET_DERIVATIVES \
    if (fork() == 0) { \
        sleep(1000); \
        _exit(0); \
    }
#include "spring.h"
