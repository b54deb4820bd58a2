/* Advertises directional derivatives and answers zeros with status OK, as real exports do.
   Described as its plant, with providesDirectionalDerivative="true". */
#define DIRECTIONAL
#define OWN_PARTIAL
#include "spring.h"

static double partial(Model *m, fmi2ValueReference unknown, fmi2ValueReference known) { return 0; }
