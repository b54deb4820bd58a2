/* Changes the states that it is given: x is kept between -2 and 2. */
#define ON_SET_STATES m->r[0] = fmax(-2, fmin(2, m->r[0]));
#include "spring.h"
