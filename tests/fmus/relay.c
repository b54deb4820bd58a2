/* A relay: x' = u - mode with mode = 1 above x = 0 and -1 below; at x = 0 it switches without end while |u| < 1.
   What is discrete: the mode (an Integer), a count of switches (a discrete Real), two inputs that are no numbers.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="relay" guid="{relay}" numberOfEventIndicators="1">
  <ModelExchange modelIdentifier="relay"/>
  <TypeDefinitions><SimpleType name="Gear"><Enumeration><Item name="low" value="1"/><Item name="high" value="2"/>
    </Enumeration></SimpleType></TypeDefinitions>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0" initial="exact"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="1"><Real derivative="1"/></ScalarVariable>
    <ScalarVariable name="u" valueReference="2" causality="input"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="switches" valueReference="3" variability="discrete"><Real/></ScalarVariable>
    <ScalarVariable name="y" valueReference="4" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="mode" valueReference="1" variability="discrete"><Integer/></ScalarVariable>
    <ScalarVariable name="on" valueReference="2" causality="input" variability="discrete"><Boolean start="true"/>
    </ScalarVariable>
    <ScalarVariable name="gear" valueReference="3" causality="input" variability="discrete">
      <Enumeration declaredType="Gear" start="2"/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="5"/></Outputs>
    <Derivatives><Unknown index="2"/></Derivatives>
  </ModelStructure>
</fmiModelDescription>
*/
#define NV 5
#define NX 1
#define STATES {0}
#define DERIVATIVES {1}
#define START {1, 0, 0, 0, 0}
#define INDICATORS {m->r[0]}
#define ON_INSTANTIATE booleans[2] = 1, integers[3] = 2, integers[1] = 1;
#define ON_NEW_DISCRETE_STATES \
    int mode = m->r[0] > 0 ? 1 : -1; \
    if (mode != integers[1]) integers[1] = mode, m->r[3] += 1;
static int integers[8], booleans[8];
#include "fmi2_zoo.h"

static void calculate(Model *m) {
    m->r[1] = m->r[2] - integers[1];
    m->r[4] = 3 * m->r[0];
}
