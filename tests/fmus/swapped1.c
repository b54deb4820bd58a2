/* FMI 1.0, with the states in another order than the variables. */
#define MODEL swapped1
#define STATES {1, 0}
#define DERIVATIVES {3, 2}
#include "spring1.h"
