/* The plant of most behaviours: v' = u - x, x' = v, with y = 3 x + 2 u, and its exact derivatives.

   References: 0 x, 1 v, 2 der(x), 3 der(v), 4 u, 5 y, 6 local.
   For a file without a description of its own, with its name for MODEL and the attributes that it names:

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="MODEL" guid="{MODEL}" numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="MODEL" providesDirectionalDerivative="false"/>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0" initial="exact"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="v" valueReference="1" initial="exact"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="2"><Real derivative="1"/></ScalarVariable>
    <ScalarVariable name="der(v)" valueReference="3"><Real derivative="2"/></ScalarVariable>
    <ScalarVariable name="u" valueReference="4" causality="input"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="5" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="square" valueReference="6"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="6"/></Outputs>
    <Derivatives><Unknown index="3"/><Unknown index="4"/></Derivatives>
  </ModelStructure>
</fmiModelDescription>
*/
#define NV 8
#define NX 2
#define STATES {0, 1}
#define DERIVATIVES {2, 3}
#define START {1, 0}
#include "fmi2_zoo.h"

#ifndef OUTPUT
#define OUTPUT 3 * r[0] + 2 * r[4]
#endif
#ifndef STIFFNESS
#define STIFFNESS 1
#endif
#ifndef LOCAL
#define LOCAL r[0] * r[0]
#endif

static void calculate(Model *m) {
    double *r = m->r;
    r[2] = r[1];
    r[3] = r[4] - STIFFNESS * r[0];
    r[5] = OUTPUT;
    r[6] = LOCAL;
}

#if defined(DIRECTIONAL) && !defined(OWN_PARTIAL)
static double partial(Model *m, fmi2ValueReference unknown, fmi2ValueReference known) {
    if (unknown == 2) return known == 1;
    if (unknown == 3) return (known == 4) - (known == 0);
    if (unknown == 5) return 3 * (known == 0) + 2 * (known == 4);
    return 0;
}
#endif
