/* Crashes at its second instance, which is needed after an error at the first. */
#include <stdlib.h>
static int instances;
#define ON_INSTANTIATE if (instances++) *(volatile int *)0 = 1;
#define ON_GET_NOMINALS return fmi2Error;
#include "spring.h"
