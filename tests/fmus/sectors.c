/* x' = v, v' = u - gear sin x - v / 10: a gear that only events change, and the sector of x, which changes without any.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="sectors" guid="{sectors}" numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="sectors" providesDirectionalDerivative="true"/>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0" initial="exact"><Real start="0.2"/></ScalarVariable>
    <ScalarVariable name="v" valueReference="1" initial="exact"><Real start="0.1"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="2"><Real derivative="1"/></ScalarVariable>
    <ScalarVariable name="der(v)" valueReference="3"><Real derivative="2"/></ScalarVariable>
    <ScalarVariable name="u" valueReference="4" causality="input"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="gear" valueReference="5" variability="discrete" initial="exact"><Real start="2"/>
    </ScalarVariable>
    <ScalarVariable name="sector" valueReference="6" variability="discrete"><Real/></ScalarVariable>
    <ScalarVariable name="y" valueReference="7" causality="output"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="8"/></Outputs>
    <Derivatives><Unknown index="3"/><Unknown index="4"/></Derivatives>
    <InitialUnknowns><Unknown index="3"/><Unknown index="4"/><Unknown index="7"/><Unknown index="8"/></InitialUnknowns>
  </ModelStructure>
</fmiModelDescription>
*/
#define NV 8
#define NX 2
#define STATES {0, 1}
#define DERIVATIVES {2, 3}
#define START {0.2, 0.1, 0, 0, 0, 2, 0, 0}
#define DIRECTIONAL
#include "fmi2_zoo.h"

static void calculate(Model *m) {
    m->r[2] = m->r[1];
    m->r[3] = m->r[4] - m->r[5] * sin(m->r[0]) - m->r[1] / 10;
    m->r[6] = floor(m->r[0]);
    m->r[7] = m->r[0];
}
static double partial(Model *m, fmi2ValueReference row, fmi2ValueReference column) {
    if (row == 2) return column == 1;
    if (row == 3) return column == 0 ? -m->r[5] * cos(m->r[0]) : column == 1 ? -0.1 : column == 4;
    return column == 0;
}
