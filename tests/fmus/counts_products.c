/* Counts in 'square' how often it was asked for a directional derivative.
   Described as its plant, with providesDirectionalDerivative="true". */
#define DIRECTIONAL
#define ON_DIRECTIONAL m->r[7]++;
#define LOCAL m->r[7]
#include "spring.h"
