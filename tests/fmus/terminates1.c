/* FMI 1.0: asks to end the simulation at its start. */
#define MODEL terminates1
#define ON_INITIALIZE info->terminateSimulation = fmi1True;
#include "spring1.h"
