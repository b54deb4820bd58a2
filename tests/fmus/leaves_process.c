/* Starts a process that sleeps, in a session of its own, without a parent. */
#include <unistd.h>
#define ON_INSTANTIATE \
    if (fork() == 0) { \
        setsid(); \
        if (fork() == 0) sleep(1000); \
        _exit(0); \
    }
#include "spring.h"
