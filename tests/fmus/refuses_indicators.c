/* Declares three event indicators and answers an error when asked for them.
   Described as its plant, with numberOfEventIndicators="3". */
#define INDICATORS {m->r[0] - m->r[4], m->r[1]}
#include "spring.h"
