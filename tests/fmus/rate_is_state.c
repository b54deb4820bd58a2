/* der(x) is an alias of the state v, and the directional derivative answers zero for it; two names for one input.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="rate_is_state" guid="{alias}" numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="rate_is_state" providesDirectionalDerivative="true"/>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0" initial="exact"><Real start="1" nominal="0"/></ScalarVariable>
    <ScalarVariable name="v" valueReference="1" initial="exact"><Real start="2" nominal="-3"/></ScalarVariable>
    <ScalarVariable name="x_rate" valueReference="1"><Real derivative="1"/></ScalarVariable>
    <ScalarVariable name="a" valueReference="2"><Real derivative="2"/></ScalarVariable>
    <ScalarVariable name="force" valueReference="3" causality="input"><Real start="0" nominal="NaN"/></ScalarVariable>
    <ScalarVariable name="f" valueReference="3" causality="input"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="speed" valueReference="1" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="push" valueReference="3" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="acc" valueReference="2" causality="output"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="7"/><Unknown index="8"/><Unknown index="9"/></Outputs>
    <Derivatives><Unknown index="3"/><Unknown index="4"/></Derivatives>
  </ModelStructure>
</fmiModelDescription>
*/
#define NV 4
#define NX 2
#define STATES {0, 1}
#define DERIVATIVES {1, 2}
#define START {1, 2}
#define DIRECTIONAL
#include "fmi2_zoo.h"

static void calculate(Model *m) { m->r[2] = m->r[3] - 4 * m->r[0] - m->r[1]; }
static double partial(Model *m, fmi2ValueReference unknown, fmi2ValueReference known) {
    if (unknown != 2) return 0;
    return (known == 3) - 4 * (known == 0) - (known == 1);
}
