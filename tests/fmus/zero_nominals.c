/* Answers nominal values of zero. */
#define NOMINAL 0.0
#include "spring.h"
