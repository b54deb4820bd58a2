/* Is lost when asked for nominal values. */
#define ON_GET_NOMINALS m->dead = 1; return fmi2Error;
#include "spring.h"
