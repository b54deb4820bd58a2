/* v' = u - k x with k = 1; every event from t = 1 on makes the spring stiffer by 2.

   Its exact derivatives follow.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="stiffens" guid="{stiffens}" numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="stiffens" providesDirectionalDerivative="true"/>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0" initial="exact"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="v" valueReference="1" initial="exact"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="2"><Real derivative="1"/></ScalarVariable>
    <ScalarVariable name="der(v)" valueReference="3"><Real derivative="2"/></ScalarVariable>
    <ScalarVariable name="u" valueReference="4" causality="input"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="5" causality="output"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="6"/></Outputs>
    <Derivatives><Unknown index="3"/><Unknown index="4"/></Derivatives>
  </ModelStructure>
</fmiModelDescription>
*/
#define DIRECTIONAL
#define OWN_PARTIAL
#define ON_INSTANTIATE m->r[7] = 1;
#define ON_NEW_DISCRETE_STATES if (m->time >= 1) m->r[7] += 2;
#define STIFFNESS r[7]
#include "spring.h"

static double partial(Model *m, fmi2ValueReference unknown, fmi2ValueReference known) {
    if (unknown == 2) return known == 1;
    if (unknown == 3) return (known == 4) - m->r[7] * (known == 0);
    if (unknown == 5) return 3 * (known == 0) + 2 * (known == 4);
    return 0;
}
