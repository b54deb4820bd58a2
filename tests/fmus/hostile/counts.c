/* Has an impossible number of event indicators.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="counts" instantiationToken="{counts}">
  <ModelExchange modelIdentifier="counts"/>
  <ModelVariables>
    <Float64 name="time" valueReference="9" causality="independent" variability="continuous"/>
    <Float64 name="x" valueReference="0" initial="exact" start="1"/>
    <Float64 name="der(x)" valueReference="1" derivative="0"/>
    <Float64 name="u" valueReference="2" causality="input" start="0.5"/>
    <Float64 name="y" valueReference="3" causality="output"/>
  </ModelVariables>
  <ModelStructure>
    <Output valueReference="3"/>
    <ContinuousStateDerivative valueReference="1"/>
    <EventIndicator valueReference="3"/>
  </ModelStructure>
</fmiModelDescription>
*/
#define NR 4
#define fmi3GetNumberOfEventIndicators not_this
#define fmi3CompletedIntegratorStep nor_this
#include "fmi3_zoo.h"
#undef fmi3GetNumberOfEventIndicators
#undef fmi3CompletedIntegratorStep
fmi3Status fmi3CompletedIntegratorStep(fmi3Instance c, fmi3Boolean keep, fmi3Boolean *event, fmi3Boolean *terminate) {
    *event = *terminate = 0;
    return fmi3OK;
}
fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance c, size_t *n) {
    *n = (size_t)-1; /* the largest: a negative one for fmilin */
    return fmi3OK;
}
static size_t states(Model *m) { return 1; }
static void setup(Model *m) { m->r[0] = 1, m->r[2] = 0.5; }
static double *where(Model *m, fmi3ValueReference vr, size_t *size) {
    *size = 1;
    return vr < 4 ? m->r + vr : NULL;
}
static void calculate(Model *m) {
    m->r[1] = m->r[2] - 2 * m->r[0];
    m->r[3] = m->r[0] + 4 * m->r[2];
}
#ifdef DIRECTIONAL
static double partial(Model *m, size_t unknown, size_t known) {
    return unknown == 1 ? (known == 2) - 2 * (known == 0) : unknown == 3 ? (known == 0) + 4 * (known == 2) : 0;
}
#endif
