/* x' = u - gear x while it is on, else x' = u; it tells whether it is engaged (x > 0.5) and its level, a gear.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="gearbox" guid="{gearbox}" numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="gearbox"/>
  <TypeDefinitions><SimpleType name="Gear"><Enumeration><Item name="low" value="1"/><Item name="high" value="3"/>
    </Enumeration></SimpleType></TypeDefinitions>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0" initial="exact"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="1"><Real derivative="1"/></ScalarVariable>
    <ScalarVariable name="u" valueReference="2" causality="input"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="on" valueReference="0" causality="input" variability="discrete"><Boolean start="true"/>
    </ScalarVariable>
    <ScalarVariable name="gear" valueReference="0" causality="input" variability="discrete">
      <Enumeration declaredType="Gear" start="1"/></ScalarVariable>
    <ScalarVariable name="engaged" valueReference="1" causality="output" variability="discrete"><Boolean/>
    </ScalarVariable>
    <ScalarVariable name="level" valueReference="1" causality="output" variability="discrete">
      <Enumeration declaredType="Gear"/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="6"/><Unknown index="7"/></Outputs>
    <Derivatives><Unknown index="2"/></Derivatives>
  </ModelStructure>
</fmiModelDescription>
*/
#define NV 3
#define NX 1
#define STATES {0}
#define DERIVATIVES {1}
#define START {1, 0, 0}
#define TELL booleans[1] = m->r[0] > 0.5, integers[1] = m->r[0] > 2 ? 3 : 1;
#define ON_INSTANTIATE booleans[0] = 1, integers[0] = 1;
#define ON_EXIT_INITIALIZATION TELL
#define ON_NEW_DISCRETE_STATES TELL
static int integers[8], booleans[8];
#include "fmi2_zoo.h"

static void calculate(Model *m) {
    m->r[1] = m->r[2] - (booleans[0] ? integers[0] * m->r[0] : 0);
}
