/* Well-behaved: a point mass on a rod in Cartesian coordinates, x^2 + y^2 = L^2, pushed by a horizontal force.

   m x'' = F - 2 x lambda,  m y'' = -m g - 2 y lambda,  x x'' + y y'' = -(vx^2 + vy^2)

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="Pendulum" guid="{pendulum}" generationTool="by hand"
    numberOfEventIndicators="0">
  <ModelExchange modelIdentifier="pendulum" providesDirectionalDerivative="true"/>
  <UnitDefinitions>
    <Unit name="m"><BaseUnit m="1"/></Unit>
    <Unit name="m/s"><BaseUnit m="1" s="-1"/></Unit>
    <Unit name="N"><BaseUnit kg="1" m="1" s="-2"/></Unit>
  </UnitDefinitions>
  <TypeDefinitions><SimpleType name="Length"><Real unit="m" nominal="0.5"/></SimpleType></TypeDefinitions>
  <LogCategories><Category name="logStatusError"/></LogCategories>
  <DefaultExperiment startTime="0.25"/>
  <ModelVariables>
    <ScalarVariable name="time" valueReference="14" causality="independent" variability="continuous"><Real/>
    </ScalarVariable>
    <ScalarVariable name="pin.vy" valueReference="3" initial="exact"><Real unit="m/s" start="0"/></ScalarVariable>
    <ScalarVariable name="pin.vx" valueReference="2" initial="exact"><Real unit="m/s" start="0"/></ScalarVariable>
    <ScalarVariable name="pin.y" valueReference="1" initial="exact"><Real declaredType="Length" start="-1"/>
    </ScalarVariable>
    <ScalarVariable name="pin.x" valueReference="0" initial="exact" description="to the right">
      <Real declaredType="Length" start="0"/></ScalarVariable>
    <ScalarVariable name="der(pin.x)" valueReference="4"><Real unit="m/s" derivative="5"/></ScalarVariable>
    <ScalarVariable name="der(pin.y)" valueReference="5"><Real unit="m/s" derivative="4"/></ScalarVariable>
    <ScalarVariable name="ax" valueReference="6"><Real derivative="3"/></ScalarVariable>
    <ScalarVariable name="ay" valueReference="7"><Real derivative="2"/></ScalarVariable>
    <ScalarVariable name="F" valueReference="8" causality="input"><Real unit="N" nominal="10" start="0"/>
    </ScalarVariable>
    <ScalarVariable name="L" valueReference="9" causality="parameter" variability="fixed"><Real start="1"/>
    </ScalarVariable>
    <ScalarVariable name="mass" valueReference="10" causality="parameter" variability="tunable"><Real start="2"/>
    </ScalarVariable>
    <ScalarVariable name="lambda" valueReference="11"><Real/></ScalarVariable>
    <ScalarVariable name="tension" valueReference="12" causality="output"><Real unit="N"/></ScalarVariable>
    <ScalarVariable name="right" valueReference="0" causality="output"><Real/></ScalarVariable>
    <ScalarVariable name="rod.gap" valueReference="13"><Real/></ScalarVariable>
    <ScalarVariable name="side" valueReference="0" causality="output" variability="discrete"><Integer/></ScalarVariable>
    <ScalarVariable name="count" valueReference="1" causality="parameter" variability="fixed"><Integer start="0"/>
    </ScalarVariable>
    <ScalarVariable name="double.L" valueReference="15" causality="calculatedParameter" variability="fixed"><Real/>
    </ScalarVariable>
  </ModelVariables>
  <ModelStructure>
    <Outputs><Unknown index="14"/><Unknown index="15" dependencies=""/><Unknown index="17"/></Outputs>
    <Derivatives>
      <Unknown index="6" dependencies="3"/><Unknown index="7"/><Unknown index="8"/><Unknown index="9"/>
    </Derivatives>
  </ModelStructure>
</fmiModelDescription>
*/
#define NV 16
#define NX 4
#define STATES {0, 1, 2, 3}
#define DERIVATIVES {4, 5, 6, 7}
#define START {0, -1, 0, 0, 0, 0, 0, 0, 0, 1, 2}
#define DIRECTIONAL
#define ON_FREE SAY(fmi2OK, "freed");
#include "fmi2_zoo.h"

static const double g = 9.81;

static void calculate(Model *m) {
    double *r = m->r, x = r[0], y = r[1], vx = r[2], vy = r[3], F = r[8], mass = r[10];
    double l2 = x * x + y * y;
    double lambda = (F * x - mass * g * y + mass * (vx * vx + vy * vy)) / (2 * l2);
    r[4] = vx;
    r[5] = vy;
    r[6] = (F - 2 * x * lambda) / mass;
    r[7] = -g - 2 * y * lambda / mass;
    r[11] = lambda;
    r[12] = 2 * lambda * r[9];
    r[13] = l2 - r[9] * r[9];
    r[14] = m->time;
    r[15] = 2 * r[9];
}

static double partial(Model *m, fmi2ValueReference unknown, fmi2ValueReference known) {
    double *r = m->r, x = r[0], y = r[1], vx = r[2], vy = r[3], F = r[8], mass = r[10];
    double l2 = x * x + y * y, lambda = r[11], d, dl;
    switch (known) {
    case 0: d = F, dl = 2 * x; break;
    case 1: d = -mass * g, dl = 2 * y; break;
    case 2: d = 2 * mass * vx, dl = 0; break;
    case 3: d = 2 * mass * vy, dl = 0; break;
    case 8: d = x, dl = 0; break;
    default: return 0;
    }
    double dlambda = d / (2 * l2) - lambda * dl / l2;
    switch (unknown) {
    case 4: return known == 2;
    case 5: return known == 3;
    case 6: return ((known == 8) - 2 * (known == 0) * lambda - 2 * x * dlambda) / mass;
    case 7: return (-2 * (known == 1) * lambda - 2 * y * dlambda) / mass;
    case 12: return 2 * r[9] * dlambda;
    default: return 0; /* also for 'right', which is a state */
    }
}
