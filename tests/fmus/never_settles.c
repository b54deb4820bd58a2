/* The event iteration at the start never ends. */
#define ON_NEW_DISCRETE_STATES info->newDiscreteStatesNeeded = fmi2True;
#include "spring.h"
