/* The derivative is not a number where x is negative. */
#define ON_GET_DERIVATIVES if (m->r[0] < 0) m->r[3] = NAN;
#include "spring.h"
