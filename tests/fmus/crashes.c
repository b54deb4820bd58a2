/* Crashes when it is asked for derivatives. */
#include <stdlib.h>
#define ON_GET_DERIVATIVES *(volatile int *)0 = 1;
#include "spring.h"
