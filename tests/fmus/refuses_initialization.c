/* Initialization fails, with a reason. */
#define ON_EXIT_INITIALIZATION \
    SAY(fmi2Error, "no solution for %s after %d iterations, residual of #r0# is %g", "the start values", 17, 0.5); \
    return fmi2Error;
#define ON_FREE SAY(fmi2OK, "freed");
#include "spring.h"
