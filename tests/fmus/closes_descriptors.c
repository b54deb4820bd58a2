/* Closes every descriptor, standard streams included. */
#include <unistd.h>
#define ON_GET_DERIVATIVES \
    for (int d = 0; d < 1024; d++) close(d);
#include "spring.h"
