/* Instantiation answers a null pointer. */
#define ON_INSTANTIATE SAY(fmi2Error, "no licence for %s", name); return NULL;
#include "spring.h"
