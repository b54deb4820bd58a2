/* v' = (-v^3 - x / k^8) / m^8, y = v / r^8: m, k, r are inputs. One of them that is not positive is an
   error, after which the standard allows no more than to free the instance.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="divides" guid="{divides}" numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="divides"/>
  <ModelVariables>
    <ScalarVariable name="x" valueReference="0" initial="exact"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="v" valueReference="1" initial="exact"><Real start="0.5"/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="2"><Real derivative="1"/></ScalarVariable>
    <ScalarVariable name="der(v)" valueReference="3"><Real derivative="2"/></ScalarVariable>
    <ScalarVariable name="m" valueReference="4" causality="input"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="k" valueReference="5" causality="input"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="r" valueReference="6" causality="input"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="7" causality="output"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="8"/></Outputs><Derivatives><Unknown index="3"/><Unknown index="4"/></Derivatives>
  </ModelStructure>
</fmiModelDescription>
*/
#define NV 8
#define NX 2
#define STATES {0, 1}
#define DERIVATIVES {2, 3}
#define START {1, 0.5, 0, 0, 1, 1, 1}
#define ON_GET_DERIVATIVES if (m->r[4] <= 0 || m->r[5] <= 0 || m->r[6] <= 0) { m->dead = 1; return fmi2Error; }
#include "fmi2_zoo.h"

static void calculate(Model *m) {
    double *r = m->r;
    r[2] = r[1];
    r[3] = (-r[1] * r[1] * r[1] - r[0] / pow(r[5], 8)) / pow(r[4], 8);
    r[7] = r[1] / pow(r[6], 8);
}
