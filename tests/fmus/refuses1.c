/* FMI 1.0: says why it cannot be initialized. */
#define MODEL refuses1
#define ON_INITIALIZE { SAY(fmi1Error, "no solution for %s after %d steps", "x", 17); return fmi1Error; }
#include "spring1.h"
