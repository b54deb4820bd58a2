/* Every directional derivative leaves its known shifted, but only beyond x = 2.
   Described as its plant, with providesDirectionalDerivative="true". */
#define DIRECTIONAL
#define ON_DIRECTIONAL if (m->r[0] > 2) for (size_t j = 0; j < nKnown; j++) m->r[known[j]] += 1e-5;
#include "spring.h"
