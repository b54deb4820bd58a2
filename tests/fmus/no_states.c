/* Legal and small: no states, y = 2 u.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="no_states" guid="{none}" numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="no_states" providesDirectionalDerivative="true"/>
  <ModelVariables>
    <ScalarVariable name="u" valueReference="0" causality="input"><Real start="3"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="1" causality="output"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure><Outputs><Unknown index="2"/></Outputs></ModelStructure>
</fmiModelDescription>
*/
#define NV 2
#define NX 0
#define START {3}
#define DIRECTIONAL
#include "fmi2_zoo.h"

static void calculate(Model *m) { m->r[1] = 2 * m->r[0]; }
static double partial(Model *m, fmi2ValueReference unknown, fmi2ValueReference known) {
    return 2 * (unknown == 1 && known == 0);
}
