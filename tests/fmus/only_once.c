/* Allows one instance per process, and means it: a second one in the same library ends the process. It refuses to tell
   nominal values, so that a second one is needed. */
#include <stdlib.h>
static int instances;
#define ON_INSTANTIATE if (instances++) abort();
#define ON_GET_NOMINALS return fmi2Error;
#include "spring.h"
