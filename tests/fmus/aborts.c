/* Says why, and aborts in the middle of an evaluation, as tools do for which a file is missing. */
#include <stdlib.h>
#define ON_GET_DERIVATIVES SAY(fmi2Error, "the table %s is missing", "drag.txt"); abort();
#include "spring.h"
