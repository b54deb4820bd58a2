/* Switches floating-point traps on when it is instantiated, and leaves them so. */
#define _GNU_SOURCE
#include <fenv.h>
#define ON_INSTANTIATE feenableexcept(FE_DIVBYZERO | FE_INVALID);
#include "spring.h"
