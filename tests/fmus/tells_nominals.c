/* Knows nominal values that its description leaves out. */
#define NOMINAL (i == 0 ? 1.0 : 250.0)
#include "spring.h"
