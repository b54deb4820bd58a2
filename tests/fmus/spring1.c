/* A mass on a spring in FMI 1.0 for model exchange. */
#define MODEL spring1
#include "spring1.h"
