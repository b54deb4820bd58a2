/* Against the standard, variables are calculated together with the derivatives only: asked for alone, they are old.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="late_variables" guid="{late}" numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="late_variables"/>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0" initial="exact"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="1"><Real derivative="1"/></ScalarVariable>
    <ScalarVariable name="gap" valueReference="2"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure><Derivatives><Unknown index="2"/></Derivatives></ModelStructure>
</fmiModelDescription>
*/
static int asked = 1;
#define NV 3
#define NX 1
#define STATES {0}
#define DERIVATIVES {1}
#define START {1}
#define ON_GET_DERIVATIVES asked = 1; calculate(m);
#include "fmi2_zoo.h"

static void calculate(Model *m) {
    if (!asked) return;
    asked = 0;
    m->r[1] = -m->r[0];
    m->r[2] = m->r[0] - 1;
}
