model Crane "A trolley, and a load on a rope"
  parameter Real M(unit = "kg") = 5, m(unit = "kg") = 2, l(unit = "m") = 3;
  parameter Real d(unit = "N.s/m") = 4 "friction of the trolley";
  constant Real g(unit = "m/s2") = 9.81;
  input Real F(unit = "N") "at the trolley";
  output Real position(unit = "m") = s;
  output Real angle(unit = "rad") = atan2(x - s, -y);
  Real s(unit = "m"), v(unit = "m/s");
  Real x(unit = "m"), y(unit = "m", start = -3), vx(unit = "m/s"), vy(unit = "m/s");
  Real T(unit = "N/m") "tension over length";
equation
  der(s) = v;
  der(x) = vx;
  der(y) = vy;
  M*der(v) = F - d*v + T*(x - s);
  m*der(vx) = -T*(x - s);
  m*der(vy) = -T*y - m*g;
  (x - s)^2 + y^2 = l^2;
end Crane;
