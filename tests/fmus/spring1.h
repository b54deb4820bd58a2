/* The plant of the FMI 1.0 behaviours: m v' = u - k x - d v, x' = v, with y = 3 x + 2 u.

   References: 0 x, 1 v, 2 der(x), 3 der(v), 4 u, 5 y, 6 mass, 7 stiffness, 8 damping, 9 square of x.
   For a file without a description of its own, with its name for MODEL:

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="1.0" modelName="MODEL" modelIdentifier="MODEL" guid="{MODEL}"
  generationTool="by hand" numberOfContinuousStates="2" numberOfEventIndicators="0">
  <TypeDefinitions>
    <Type name="Length"><RealType unit="m" nominal="0.5"/></Type>
  </TypeDefinitions>
  <DefaultExperiment startTime="0.0" stopTime="1.0"/>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0"><Real declaredType="Length" start="1" fixed="true"/></ScalarVariable>
    <ScalarVariable name="v" valueReference="1"><Real unit="m/s" start="0" fixed="true"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="2"><Real unit="m/s"/></ScalarVariable>
    <ScalarVariable name="der(v)" valueReference="3"><Real unit="m/s2"/></ScalarVariable>
    <ScalarVariable name="u" valueReference="4" causality="input"><Real unit="N" start="0"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="5" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="mass" valueReference="6" variability="parameter"><Real unit="kg" start="2"/></ScalarVariable>
    <ScalarVariable name="stiffness" valueReference="7" variability="parameter"><Real start="8"/></ScalarVariable>
    <ScalarVariable name="damping" valueReference="8" variability="parameter"><Real start="0.5"/></ScalarVariable>
    <ScalarVariable name="square" valueReference="9"><Real/></ScalarVariable>
    <ScalarVariable name="position" valueReference="0" alias="alias"><Real/></ScalarVariable>
    <ScalarVariable name="minus_x" valueReference="0" alias="negatedAlias" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="count" valueReference="1" variability="parameter"><Integer start="3"/></ScalarVariable>
    <ScalarVariable name="on" valueReference="2" variability="parameter"><Boolean start="true"/></ScalarVariable>
    <ScalarVariable name="label" valueReference="3" variability="parameter"><String start="abc"/></ScalarVariable>
  </ModelVariables>
</fmiModelDescription>
*/
#define NV 10
#define NX 2
#ifndef STATES
#define STATES {0, 1}
#endif
#ifndef DERIVATIVES
#define DERIVATIVES {2, 3}
#endif
#define START {1, 0, 0, 0, 0, 0, 2, 8, 0.5, 0}
#include "fmi1_zoo.h"

static void calculate(Model *m) {
    double *r = m->r;
    r[2] = r[1];
    r[3] = (r[4] - r[7] * r[0] - r[8] * r[1]) / r[6];
    r[5] = 3 * r[0] + 2 * r[4];
    r[9] = r[0] * r[0];
}
