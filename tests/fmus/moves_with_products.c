/* Every directional derivative leaves its known shifted, even a single one.
   Described as its plant, with providesDirectionalDerivative="true". */
#define DIRECTIONAL
#define ON_DIRECTIONAL for (size_t j = 0; j < nKnown; j++) m->r[known[j]] += 1e-5;
#include "spring.h"
