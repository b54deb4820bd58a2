/* As Dymola up to 2023x: a call with several seeds leaves all knowns but the first shifted.
   Described as its plant, with providesDirectionalDerivative="true". */
#define DIRECTIONAL
#define ON_DIRECTIONAL \
    for (size_t j = 1; j < nKnown; j++) \
        if (seed[j] != 0) m->r[known[j]] += 1e-5 * (1 + fabs(m->r[known[j]]));
#include "spring.h"
