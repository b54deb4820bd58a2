/* Without inputs: x'' = -k x - c v from x = 1, y = k x. The stiffness k is fixed at the start, the damping c can be
   tuned at events; set at any other time, both are refused.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="no_inputs" guid="{free}" numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="no_inputs"/>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0" initial="exact"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="v" valueReference="1" initial="exact"><Real start="0.5"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="2"><Real derivative="1"/></ScalarVariable>
    <ScalarVariable name="der(v)" valueReference="3"><Real derivative="2"/></ScalarVariable>
    <ScalarVariable name="k" valueReference="4" causality="parameter" variability="fixed"><Real start="4"/>
    </ScalarVariable>
    <ScalarVariable name="c" valueReference="5" causality="parameter" variability="tunable"><Real start="0.2"/>
    </ScalarVariable>
    <ScalarVariable name="y" valueReference="6" causality="output"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="7"/></Outputs><Derivatives><Unknown index="3"/><Unknown index="4"/></Derivatives>
  </ModelStructure>
</fmiModelDescription>
*/
#define NV 8 /* the last one is the mode: 0 before initialization ends, 1 at events, 2 in continuous time */
#define NX 2
#define STATES {0, 1}
#define DERIVATIVES {2, 3}
#define START {1, 0.5, 0, 0, 4, 0.2}
#define ON_EXIT_INITIALIZATION m->r[7] = 1;
#define ON_EVENT_MODE m->r[7] = 1;
#define ON_CONTINUOUS_TIME_MODE m->r[7] = 2;
#define ON_SET_REAL \
    for (size_t i = 0; i < n; i++) \
        if ((vr[i] == 4 && m->r[7] != 0) || (vr[i] == 5 && m->r[7] == 2)) return fmi2Error;
#include "fmi2_zoo.h"

static void calculate(Model *m) {
    double *r = m->r;
    r[2] = r[1];
    r[3] = -r[4] * r[0] - r[5] * r[1];
    r[6] = r[4] * r[0];
}
