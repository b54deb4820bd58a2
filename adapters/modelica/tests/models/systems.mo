package Systems "Small plants, each with a linear model that is known otherwise"
  model DoublePendulum "Two rods in Cartesian coordinates"
    constant Real g = 9.81;
    parameter Real m[2](each unit = "kg") = {1.0, 0.7};
    parameter Real L[2](each unit = "m") = {1.2, 0.8};
    Real x[2](each unit = "m"), y[2](each unit = "m", start = {-1.2, -2.0});
    Real vx[2], vy[2];
    Real F[2] "tensions over length";
    input Real push(unit = "N") "at the lower bob";
  equation
    for i in 1:2 loop
      der(x[i]) = vx[i];
      der(y[i]) = vy[i];
    end for;
    m[1]*der(vx[1]) = -F[1]*x[1] + F[2]*(x[2] - x[1]);
    m[1]*der(vy[1]) = -F[1]*y[1] + F[2]*(y[2] - y[1]) - m[1]*g;
    m[2]*der(vx[2]) = -F[2]*(x[2] - x[1]) + push;
    m[2]*der(vy[2]) = -F[2]*(y[2] - y[1]) - m[2]*g;
    x[1]^2 + y[1]^2 = L[1]^2;
    (x[2] - x[1])^2 + (y[2] - y[1])^2 = L[2]^2;
  end DoublePendulum;

  model Crane "A trolley, and a load on a rope whose length is an input"
    constant Real g = 9.81;
    parameter Real M(unit = "kg") = 5, m(unit = "kg") = 2;
    input Real F(unit = "N");
    input Real l(unit = "m", start = 3);
    Real s(unit = "m"), v(unit = "m/s");
    Real x(unit = "m"), y(unit = "m", start = -3), vx(unit = "m/s"), vy(unit = "m/s");
    Real T(unit = "N/m");
  equation
    der(s) = v;
    der(x) = vx;
    der(y) = vy;
    M*der(v) = F + T*(x - s);
    m*der(vx) = -T*(x - s);
    m*der(vy) = -T*y - m*g;
    (x - s)^2 + y^2 = l^2;
  end Crane;

  model SliderCrank "With a torque at the crank"
    parameter Real r(unit = "m") = 0.3, L(unit = "m") = 1, J(unit = "kg.m2") = 0.2, m(unit = "kg") = 1.5, k(unit = "N/m") = 40;
    input Real torque(unit = "N.m");
    Real phi(unit = "rad", start = 1.0, fixed = true), w(unit = "rad/s", start = 0);
    Real beta(unit = "rad", start = 0.25), s(unit = "m", start = 1.1), v(unit = "m/s");
    Real f(unit = "N") "along the slide";
  equation
    der(phi) = w;
    der(s) = v;
    r*sin(phi) = L*sin(beta);
    s = r*cos(phi) + L*cos(beta);
    m*der(v) = f - k*(s - 1);
    J*der(w) = torque + f*r*sin(phi + beta)/cos(beta);
  end SliderCrank;

  model FourBar "Three uniform rods of 1 m and 1 kg, ends in Cartesian coordinates, a spring across"
    constant Real g = 9.81;
    parameter Real m = 1, k = 25, rest = sqrt(2);
    input Real torque(unit = "N.m") "on the last rod";
    Real x0(unit = "m", start = -0.6159), y0(unit = "m", start = 0.7878), vx0, vy0;
    Real x1(unit = "m", start = 0.3841), y1(unit = "m", start = 0.7878), vx1, vy1;
    Real pull, F[3] "multipliers";
  equation
    der(x0) = vx0;
    der(y0) = vy0;
    der(x1) = vx1;
    der(y1) = vy1;
    pull = k*(1 - rest/sqrt(x1^2 + y1^2));
    m*(4*der(vx0) + der(vx1))/6 = -F[1]*x0 + F[3]*(x1 - x0);
    m*(4*der(vy0) + der(vy1))/6 = -m*g - F[1]*y0 + F[3]*(y1 - y0);
    m*(4*der(vx1) + der(vx0))/6 = -pull*x1 - torque*y1 - F[2]*(x1 - 1) - F[3]*(x1 - x0);
    m*(4*der(vy1) + der(vy0))/6 = -m*g - pull*y1 + torque*(x1 - 1) - F[2]*y1 - F[3]*(y1 - y0);
    x0^2 + y0^2 = 1;
    (x1 - 1)^2 + y1^2 = 1;
    (x1 - x0)^2 + (y1 - y0)^2 = 1;
  end FourBar;

  model CapacitorLoop "A source, two capacitors in a loop with it, a coil: index 2"
    parameter Real C1 = 1e-3, C2 = 2e-3, L = 0.5, R = 10;
    input Real u;
    Real v1, v2, i1, i2, i, iu;
  equation
    C1*der(v1) = i1;
    C2*der(v2) = i2;
    L*der(i) = v2 - R*i;
    v1 + v2 = u;
    i1 = iu;
    i1 = i2 + i;
  end CapacitorLoop;

  model GearTrain "Three wheels that mesh, a spring at the last"
    parameter Real J[3] = {0.1, 0.2, 0.4}, ratio[2] = {2, 3}, c = 5, d = 0.3;
    input Real torque;
    Real phi[3], w[3], tau[2];
    output Real angle = phi[3];
  equation
    der(phi) = w;
    J[1]*der(w[1]) = torque - tau[1];
    J[2]*der(w[2]) = ratio[1]*tau[1] - tau[2];
    J[3]*der(w[3]) = ratio[2]*tau[2] - c*phi[3] - d*w[3];
    phi[1] = ratio[1]*phi[2];
    phi[2] = ratio[2]*phi[3];
  end GearTrain;

  function turbulent "turbulent, smooth at zero"
    input Real dp;
    input Real k;
    output Real q;
  protected
    Real root;
  algorithm
    root := sqrt(sqrt(dp^2 + 1));
    q := k*dp/root;
  end turbulent;

  record Fluid
    Real rho = 1000;
    Real g = 9.81;
  end Fluid;

  model Tanks "A pipe between two tanks"
    parameter Fluid water;
    parameter Real A[2] = {1.5, 0.8}, k = 2e-4;
    input Real inflow(start = 0.02);
    Real h[2](start = {4, 2}, each fixed = true, each unit = "m");
    Real q[2], p[2];
  equation
    p = water.rho*water.g*h;
    q[1] = turbulent(p[1] - p[2], k);
    q[2] = if h[2] > 1 then turbulent(p[2], k) else 0;
    A[1]*der(h[1]) = inflow - q[1];
    A[2]*der(h[2]) = q[1] - q[2];
  end Tanks;

  block PI
    parameter Real k = 4, Ti = 0.5;
    input Real e;
    output Real y;
  protected
    Real x;
  equation
    Ti*der(x) = e;
    y = k*(x + e);
  end PI;

  model Motor "A DC motor, and a PI controller of its speed"
    parameter Real R = 1, L = 0.01, km = 0.2, J = 0.005, b = 0.001;
    input Real reference, load;
    PI pi;
    Real i, w;
  equation
    pi.e = reference - w;
    L*der(i) = pi.y - R*i - km*w;
    J*der(w) = km*i - b*w - load;
  end Motor;

  model Plant "The motor alone"
    parameter Real R = 1, L = 0.01, km = 0.2, J = 0.005, b = 0.001;
    input Real u, load;
    Real i, w;
    output Real speed = w;
  equation
    L*der(i) = u - R*i - km*w;
    J*der(w) = km*i - b*w - load;
  end Plant;

  model Bouncing "With events"
    Real h(start = 2, fixed = true), v(start = 0, fixed = true);
    discrete Real kicks(start = 3);
    Boolean low(start = false);
  equation
    der(h) = v;
    der(v) = -9.81 - 0.1*kicks*v;
    when h < 0 then
      reinit(v, -0.8*pre(v));
      kicks = pre(kicks) + 1;
    end when;
    when h < 1 then
      low = true;
    end when;
  end Bouncing;

  model Started "Whose initial equations and parameter are to be solved"
    parameter Real p(fixed = false, start = 1);
    Real x(start = 0.5), y(start = 2, fixed = true);
  initial equation
    der(x) = 0;
    p = 2*x;
  equation
    der(x) = 3 - x^2 + 0*y;
    der(y) = -p*y;
  end Started;

  model Hysteresis "On below 0.5, and up to 1.5 once it is on"
    Real x(start = 1, fixed = true);
    Boolean on(start = true, fixed = true);
  equation
    on = x < 0.5 or pre(on) and x < 1.5;
    der(x) = -x + (if on then 3*x else 0);
  end Hysteresis;

  model Asserted "Outside what it is made for"
    Real x(start = 2, fixed = true);
  equation
    der(x) = -x;
    assert(x < 1, "x is too large");
    assert(x > 0, "x is too small");
  end Asserted;

  model Singular "Which leaves one variable open"
    Real x(start = 1), y, z;
  equation
    der(x) = -x + y;
    y + z = 1;
    2*y + 2*z = 2;
  end Singular;
  model Torricelli "a flow that the start value 0 gives no slope"
    Real h[2](start = {2, 1}, each fixed = true);
    Real q;
  equation
    1.5*der(h[1]) = -q;
    2*der(h[2]) = q;
    4*q*abs(q) = 10*(h[1] - h[2]);
  end Torricelli;

  model ClosedTanks "two tanks and a pipe; heights as states of algebraic volumes"
    parameter Real A1 = 2, A2 = 3;
    Real h1(start = 1, fixed = true), h2(start = 0.25, fixed = true);
    Real q, V;
    output Real content = V;
  equation
    A1*der(h1) = -q;
    A2*der(h2) = q;
    q = 0.5*(h1 - h2);
    V = A1*h1 + A2*h2;
  end ClosedTanks;

  model ClosedVolumes "three volumes, nonlinear flows"
    Real m[3](start = {1, 0.5, 0.3}, each fixed = true);
    Real f[2];
  equation
    der(m[1]) = -f[1];
    der(m[2]) = f[1] - f[2];
    der(m[3]) = f[2];
    f[1] = (m[1] - m[2])*(1 + m[1]^2);
    f[2] = m[2] - 2*m[3];
  end ClosedVolumes;

  model ClosedCircuit "a loop of two charged capacitors and a resistor"
    parameter Real C1 = 1e-6, C2 = 3e-6, R = 100;
    Real v1(start = 10, fixed = true), v2(start = 2, fixed = true), i;
  equation
    C1*der(v1) = -i;
    C2*der(v2) = i;
    v1 - v2 = R*i;
  end ClosedCircuit;

  model FreeInertias "two free inertias with a viscous clutch"
    parameter Real J1 = 2, J2 = 0.5, d = 0.3;
    Real w1(start = 4, fixed = true), w2(start = -1, fixed = true), tau;
  equation
    J1*der(w1) = -tau;
    J2*der(w2) = tau;
    tau = d*(w1 - w2);
  end FreeInertias;

end Systems;
