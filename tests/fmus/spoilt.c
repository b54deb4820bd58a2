/* No states, and a question about them is an error after which nothing works any more: y = 2 u.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="spoilt" guid="{spoilt}" numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="spoilt"/>
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
#define ON_GET_STATES m->dead = 1; return fmi2Error;
#include "fmi2_zoo.h"

static void calculate(Model *m) { m->r[1] = 2 * m->r[0]; }
