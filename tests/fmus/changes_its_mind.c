/* Starts at x = 0.5, whatever it is told. */
#define ON_EXIT_INITIALIZATION m->r[0] = 0.5;
#include "spring.h"
