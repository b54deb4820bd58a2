/* As Dymola up to 2023x: a call with several seeds leaves all knowns but the first shifted.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="shifts_after_products" guid="{shifts_after_products}" numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="shifts_after_products" providesDirectionalDerivative="true"/>
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
#define DIRECTIONAL
#define ON_DIRECTIONAL \
    for (size_t j = 1; j < nKnown; j++) \
        if (seed[j] != 0) m->r[known[j]] += 1e-5 * (1 + fabs(m->r[known[j]]));
#include "spring.h"
