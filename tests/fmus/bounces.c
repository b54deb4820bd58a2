/* A ball that bounces: x'' = -10 above a floor at x = 0; each bounce keeps half of the speed (e = 0.5) and is counted.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="bounces" guid="{bounces}" numberOfEventIndicators="1">
  <ModelExchange modelIdentifier="bounces"/>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0" initial="exact"><Real start="5"/></ScalarVariable>
    <ScalarVariable name="v" valueReference="1" initial="exact"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="2"><Real derivative="1"/></ScalarVariable>
    <ScalarVariable name="der(v)" valueReference="3"><Real derivative="2"/></ScalarVariable>
    <ScalarVariable name="bounces" valueReference="4" causality="output"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="5"/></Outputs>
    <Derivatives><Unknown index="3"/><Unknown index="4"/></Derivatives>
  </ModelStructure>
</fmiModelDescription>
*/
#define NV 5
#define NX 2
#define STATES {0, 1}
#define DERIVATIVES {2, 3}
#define START {5, 0, 0, 0, 0}
#define INDICATORS {m->r[0]}
#define ON_NEW_DISCRETE_STATES \
    if (m->r[0] <= 0 && m->r[1] < 0) { \
        m->r[0] = 0; \
        m->r[1] *= -0.5; \
        m->r[4] += 1; \
        info->valuesOfContinuousStatesChanged = fmi2True; \
    }
#include "fmi2_zoo.h"

static void calculate(Model *m) {
    m->r[2] = m->r[1];
    m->r[3] = -10;
}
