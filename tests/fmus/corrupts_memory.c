/* Writes beyond what it was given, which is found out later. */
#include <stdlib.h>
#define ON_GET_NOMINALS { volatile char *p = malloc(40); for (int i = -16; i < 120; i++) p[i] = 7; free((void *)p); }
#include "spring.h"
