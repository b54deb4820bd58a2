/* Has two event indicators: x - u and v.
   Described as its plant, with numberOfEventIndicators="2". */
#define INDICATORS {m->r[0] - m->r[4], m->r[1]}
#include "spring.h"
