/* Ends the whole process when it is asked for derivatives. */
#include <stdlib.h>
#define ON_GET_DERIVATIVES exit(0);
#include "spring.h"
