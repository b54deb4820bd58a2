/* A directional derivative is an illegal call that ends the instance, although it is advertised.
   Described as its plant, with providesDirectionalDerivative="true". */
#define ON_DIRECTIONAL \
    SAY(fmi2Error, "illegal call sequence in %s", "fmi2GetDirectionalDerivative"); \
    m->dead = 1;
#include "spring.h"
