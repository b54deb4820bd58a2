/* Takes memory without end. */
#include <stdlib.h>
#define ON_GET_DERIVATIVES for (;;) { volatile char *p = malloc(1 << 24); for (int i = 0; i < 1 << 24; i += 4096) p[i] = 1; }
#include "spring.h"
