/* Asks to terminate at its start. */
#define ON_NEW_DISCRETE_STATES SAY(fmi2Warning, "the tank is empty"); info->terminateSimulation = fmi2True;
#include "spring.h"
