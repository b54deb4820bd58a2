/* Crashes when it is asked for derivatives where x is between 0.5 and 0.6. */
#define ON_GET_DERIVATIVES if (m->r[0] > 0.5 && m->r[0] < 0.6) *(volatile int *)0 = 1;
#include "spring.h"
