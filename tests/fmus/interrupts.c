/* Speaks up after accepted steps: it asks for an event once x is negative, which turns x' = -1 into x' = +2, and asks
   to end the simulation when x is above 3 after that.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="interrupts" guid="{interrupts}" numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="interrupts"/>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0" initial="exact"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="1"><Real derivative="1"/></ScalarVariable>
    <ScalarVariable name="rate" valueReference="2" causality="output"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="3"/></Outputs>
    <Derivatives><Unknown index="2"/></Derivatives>
  </ModelStructure>
</fmiModelDescription>
*/
#define NV 3
#define NX 1
#define STATES {0}
#define DERIVATIVES {1}
#define START {1, -1, -1}
#define ON_COMPLETED_STEP \
    *event = m->r[0] < 0 && m->r[2] < 0; \
    *terminate = m->r[0] > 3 && m->r[2] > 0;
#define ON_NEW_DISCRETE_STATES \
    if (m->r[0] < 0) m->r[2] = 2;
#include "fmi2_zoo.h"

static void calculate(Model *m) { m->r[1] = m->r[2]; }
