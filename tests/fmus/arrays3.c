/* A chain x' = -k x + neighbours, whose states, inputs and outputs are arrays; its length is a structural parameter.

   x_i' = -k_i x_i + x_{i+1} + i u_1,  y = [[x_1, x_2], [u_1, u_2]] (row by row), total = sum of x.

modelDescription.xml
<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="Chain" instantiationToken="{chain}" generationTool="by hand">
  <ModelExchange modelIdentifier="arrays3" providesDirectionalDerivatives="true"/>
  <UnitDefinitions><Unit name="m"><BaseUnit m="1"/></Unit></UnitDefinitions>
  <TypeDefinitions><Float64Type name="Length" unit="m" nominal="0.01"/></TypeDefinitions>
  <ModelVariables>
    <Float64 name="time" valueReference="90" causality="independent" variability="continuous"/>
    <UInt64 name="n" valueReference="9" causality="structuralParameter" variability="fixed" start="3"/>
    <Float64 name="x" valueReference="0" declaredType="Length" initial="exact" start="1 2 3">
      <Dimension valueReference="9"/>
      <Alias name="position"/>
    </Float64>
    <Float64 name="rates" valueReference="1" derivative="0"><Dimension valueReference="9"/></Float64>
    <Float64 name="u" valueReference="2" causality="input" start="0.5 0.25">
      <Dimension start="2"/>
      <Alias name="force"/>
    </Float64>
    <Float64 name="y" valueReference="3" causality="output"><Dimension start="2"/><Dimension start="2"/></Float64>
    <Float64 name="total" valueReference="4" causality="output"><Alias name="sum"/></Float64>
    <Float64 name="k" valueReference="5" causality="parameter" variability="fixed" start="1 1 1">
      <Dimension valueReference="9"/>
    </Float64>
    <Float64 name="hidden" valueReference="6"/>
    <Int32 name="mode" valueReference="7" causality="output"/>
    <Clock name="tick" valueReference="8" causality="input" intervalVariability="triggered"/>
  </ModelVariables>
  <ModelStructure>
    <Output valueReference="3" dependencies="0 2" dependenciesKind="constant constant"/>
    <Output valueReference="4" dependencies="0"/>
    <Output valueReference="7" dependencies=""/>
    <ContinuousStateDerivative valueReference="1"/>
  </ModelStructure>
</fmiModelDescription>
*/
#define NR 40
#define DIRECTIONAL
#include "fmi3_zoo.h"

enum { U = 30, Y = 32, TOTAL = 36, HIDDEN = 37, K = 20 };

static size_t states(Model *m) { return m->n; }
static void setup(Model *m) {
    for (size_t i = 0; i < m->n; i++) m->r[i] = i + 1, m->r[K + i] = 1;
    m->r[U] = 0.5, m->r[U + 1] = 0.25;
}
static double *where(Model *m, fmi3ValueReference vr, size_t *size) {
    static const int at[] = {0, 0, U, Y, TOTAL, K, HIDDEN};
    const size_t sizes[] = {m->n, m->n, 2, 4, 1, m->n, 1};
    if (vr > 6) return NULL;
    *size = sizes[vr];
    return m->r + (vr == 1 ? m->n : at[vr]);
}
static void calculate(Model *m) {
    double *x = m->r, *rates = m->r + m->n, *r = m->r;
    r[TOTAL] = 0;
    for (size_t i = 0; i < m->n; i++) {
        rates[i] = -r[K + i] * x[i] + (i + 1 < m->n ? x[i + 1] : 0) + (i + 1) * r[U];
        r[TOTAL] += x[i];
    }
    r[Y] = x[0], r[Y + 1] = x[1], r[Y + 2] = r[U], r[Y + 3] = r[U + 1];
    r[HIDDEN] = x[0] * x[1];
}
static double partial(Model *m, size_t unknown, size_t known) {
    size_t n = m->n;
    if (n <= unknown && unknown < 2 * n) {
        size_t i = unknown - n;
        return -m->r[K + i] * (known == i) + (known == i + 1 && known < n) + (i + 1.0) * (known == U);
    }
    if (unknown == TOTAL) return known < n;
    static const size_t sources[] = {0, 1, U, U + 1};
    return Y <= unknown && unknown < Y + 4 && known == sources[unknown - Y];
}
