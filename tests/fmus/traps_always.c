/* Switches floating-point traps on, and divides by zero. */
#define _GNU_SOURCE
#include <fenv.h>
#define ON_GET_DERIVATIVES feenableexcept(FE_DIVBYZERO); m->r[6] = 1 / (m->r[7] * 0);
#include "spring.h"
