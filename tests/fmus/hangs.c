/* Never returns from the initialization. */
#define ON_EXIT_INITIALIZATION for (volatile int i = 0;; i++);
#include "spring.h"
