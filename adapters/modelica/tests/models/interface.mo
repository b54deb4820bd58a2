package Interface "what a model shows: outputs, inputs, start values, parameters"
  connector Signal = output Real;
  record Pair
    Real a;
    Real b;
  end Pair;

  function half
    input Real a;
    output Real b;
  algorithm
    b := a/2;
  end half;

  model Outputs "every kind of quantity may be an output"
    parameter Real k = 3;
    constant Real c = 4;
    input Real u = k + 1;
    input Real pair[2](start = {5, 6});
    output Real state(start = 0.7, fixed = true);
    output Real of_input = u;
    output Real of_parameter = k;
    output Real of_constant = c;
    output Real of_array[2] = pair;
    output Real states[2](start = {7, 8}, each fixed = true);
    output Boolean on;
    output Integer count;
    output Real double = 2*state;
    output Real negative = -state;
    output Real rate = der(state);
    output Real clock = time;
    output Real held(start = 2, fixed = true);
    output Pair record_;
    Signal connector_;
  equation
    der(state) = -state + u;
    der(states) = -states + pair;
    on = state > 0.5;
    count = if on then 1 else 2;
    record_.a = state + u;
    record_.b = k;
    connector_ = states[2];
    when time > 3 then
      held = state;
    end when;
  end Outputs;

  model Defaults "inputs with values of all kinds"
    parameter Real k = 3;
    parameter Real p[2] = {1, 2};
    parameter Boolean flag = true;
    input Real number = 2.0;
    input Real of_parameters = k^2 + 1;
    input Real array[2] = {k, -p[2]};
    input Real chosen = if flag then half(k) else 0;
    input Real entrywise[2] = p .* p;
    input Real functions = max(p) + sin(k) + atan2(k, 2) + sqrt(abs(-k));
    input Real started(start = 4);
    input Real of_start[2](start = {1, 2});
    input Real of_input = 2*started;
    input Real of_time = time + 1;
    input Real both(start = 9) = 8;
    input Real moving = x;
    Real x(start = 1, fixed = true);
    Real z;
  equation
    der(x) = -x*number + of_parameters + sum(array) + chosen + sum(entrywise) + functions + started + sum(of_start)
      + of_input + of_time + both + moving;
    z = half(x);
  end Defaults;

  model Modified
    extends Defaults(k = 5, number = 7);
  end Modified;

  model Component "a state with another name"
    Real x(start = 1);
    Real y(start = 2);
    Real minus;
  equation
    x = y;
    minus = -x;
    der(x) = -x;
  end Component;

  model Aliases "the outermost start value counts, whatever name it is written for"
    Component plain;
    Component modified(y(start = 5));
    Component negative(minus(start = 6));
    Component is_fixed(y(start = 7, fixed = true));
    Component both(x(start = 8), y(start = 9));
    Real top(start = 10);
    Component below;
  equation
    top = below.y;
  end Aliases;

  model Negatives "variables that are the negative of states and inputs"
    input Real u = 2;
    input Real w;
    Real x(start = 1), v(start = 0.5);
    Real x_minus, v_minus, x_again, w_minus;
  equation
    x_minus = -x;
    v_minus + v = 0;
    x_again = -x_minus;
    w_minus = -w;
    der(x) = v + 0.1*w_minus;
    der(v) = -4*x - 0.3*v + u;
  end Negatives;

  model Poles "coefficients that an initial equation determines"
    parameter Real T = 0.25;
    parameter Real r[2](each fixed = false);
    Real x[2];
    input Real u = 3;
  initial equation
    r = {-1/T, -2/T};
    der(x) = zeros(2);
  equation
    der(x[1]) = r[1]*(x[1] - u);
    der(x[2]) = r[2]*(x[2] - x[1]);
  end Poles;

  model SteadyStart "the start follows from initial equations"
    parameter Real k = 3;
    input Real u = 2;
    Real x, z;
  initial equation
    der(x) = 0;
    z = x;
  equation
    der(x) = k*u - x;
    der(z) = -z;
  end SteadyStart;

  model Rope "a load on a rope, written in Cartesian coordinates, whose start values are all 0 but one"
    parameter Real l = 2.5;
    constant Real g = 9.81;
    Real s(start = 0), v(start = 0);
    Real x, y(start = -l), vx, vy;
    Real T;
    input Real F;
  equation
    der(s) = v;
    der(x) = vx;
    der(y) = vy;
    8*der(v) = F + T*(x - s) - 4*v;
    3*der(vx) = -T*(x - s);
    3*der(vy) = -T*y - 3*g;
    (x - s)^2 + y^2 = l^2;
  end Rope;

  model Contradiction "the bob cannot be where it is said to be"
    Real x(start = 0.3), y(start = -0.9), vx, vy, T;
  equation
    der(x) = vx;
    der(y) = vy;
    der(vx) = -T*x;
    der(vy) = -T*y - 9.81;
    x^2 + y^2 = 1;
  end Contradiction;

  model NoValues
    parameter Real h, area;
    parameter Real m;
    parameter Real unused;
    Real T(start = 300, fixed = true);
  equation
    m*der(T) = -h*area*T;
  end NoValues;

  model Static "without a state"
    parameter Real k = 3;
    input Real u(start = 2);
    input Real w = 5;
    output Real y, q;
    Real z(start = 1);
  equation
    y = k*u;
    z^3 + z = u*5;
    q = z + w;
  end Static;

  model Periodic "a source whose period begins at an instant of time"
    parameter Real period = 2, shift = 0.5;
    discrete Real begun(start = shift);
    Integer count(start = 0);
    Real x(start = 1, fixed = true);
  initial algorithm
    count := integer((time - shift)/period);
    begun := shift + count*period;
  equation
    when integer((time - shift)/period) > pre(count) then
      count = pre(count) + 1;
      begun = time;
    end when;
    der(x) = -x + (if time < begun + 1 then 2 else 0);
  end Periodic;

  model FreeParameter "its start value follows from another parameter"
    parameter Real a = 4;
    parameter Real b(fixed = false, start = a/2.5);
    parameter Real far(fixed = false);
    Real x(start = 1, fixed = true);
  initial equation
    b^2 = a;
    far = 1e6*x;
  equation
    der(x) = -b*x + 0*far;
  end FreeParameter;

  model Impulse "a double exponential with 10 us to its peak and 350 us to half of it"
    parameter Real T1 = 10e-6, T2 = 350e-6;
    parameter Real T0 = T2*T1/(T2 - T1)*log(T2/T1);
    parameter Real eta(fixed = false, start = 1);
    parameter Real T(fixed = false, start = T0), T10(fixed = false, start = 0.01*T0);
    parameter Real tau1(fixed = false, start = T2), tau2(fixed = false, start = T1);
    Real x(start = 0, fixed = true);
  initial equation
    exp(-T/tau1)/tau1 = exp(-T/tau2)/tau2;
    eta = exp(-T/tau1) - exp(-T/tau2);
    0.1*eta = exp(-T10/tau1) - exp(-T10/tau2);
    0.9*eta = exp(-(T10 + 0.8*T1)/tau1) - exp(-(T10 + 0.8*T1)/tau2);
    0.5*eta = exp(-(T10 - 0.1*T1 + T2)/tau1) - exp(-(T10 - 0.1*T1 + T2)/tau2);
  equation
    der(x) = -x/tau1 + 2/eta*(exp(-time/tau1) - exp(-time/tau2));
  end Impulse;

  model Conducting "currents are larger than voltages by twelve powers of ten"
    parameter Real g = 1e12;
    Real v1, v2, i1, i2;
  equation
    der(v1) = i1;
    der(v2) = i2;
    v1 = v2;
    i1 + i2 = -g*v1;
  end Conducting;
end Interface;
