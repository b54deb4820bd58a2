/* Starts processes when it is instantiated, one after the other, as a bomb would that does not double; each sleeps. */
#include <unistd.h>
#define ON_INSTANTIATE \
    for (int i = 0; i < 400; i++) { \
        if (fork() == 0) { \
            sleep(1000); \
            _exit(0); \
        } \
        usleep(5000); \
    }
#include "spring.h"
