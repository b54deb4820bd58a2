/* A mass held by friction, as tools with events write it: v' = 0 for as long as it is locked, whatever u is, and an
   event indicator that watches |u| - 0.3; the event would let it slip.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="sticks" guid="{sticks}" numberOfEventIndicators="1">
  <ModelExchange modelIdentifier="sticks"/>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0" initial="exact"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="v" valueReference="1" initial="exact"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="2"><Real derivative="1"/></ScalarVariable>
    <ScalarVariable name="der(v)" valueReference="3"><Real derivative="2"/></ScalarVariable>
    <ScalarVariable name="u" valueReference="4" causality="input"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="0" causality="output"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="6"/></Outputs><Derivatives><Unknown index="3"/><Unknown index="4"/></Derivatives>
  </ModelStructure>
</fmiModelDescription>
*/
#define NV 5
#define NX 2
#define STATES {0, 1}
#define DERIVATIVES {2, 3}
#define START {0}
#define INDICATORS {fabs(m->r[4]) - 0.3}
#include "fmi2_zoo.h"

static void calculate(Model *m) {
    m->r[2] = m->r[1];
    m->r[3] = 0;
}
