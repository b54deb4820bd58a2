/* Writes to every descriptor that is open. */
#include <unistd.h>
#define ON_GET_DERIVATIVES \
    for (int d = 3; d < 1024; d++) write(d, "garbage garbage garbage garbage garbage garbage garbage", 56);
#include "spring.h"
