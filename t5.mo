package P
  connector Pin
    Complex v;
    flow Complex i;
  end Pin;
  partial model TwoPin
    Pin p, n;
    Complex v, i;
  equation
    v = p.v - n.v;
    i = p.i;
    p.i + n.i = Complex(0);
  end TwoPin;
  model Impedance
    extends TwoPin;
    Complex Z;
  equation
    v = Z*i;
  end Impedance;
  model Source
    extends TwoPin;
  equation
    v = Complex(3, 4);
  end Source;
  model Ground
    Pin p;
  equation
    p.v = Complex(0);
  end Ground;
  function power
    input Complex v[:];
    input Complex i[size(v, 1)];
    output Real p;
  protected
    Integer m = size(v, 1);
  algorithm
    p := sum({v[k].re*i[k].re + v[k].im*i[k].im for k in 1:m});
  end power;
  model Oven "An impedance that its losses heat"
    Real T(start = 2, fixed = true);
    Impedance load(Z = (1 + 0.1*T)*Complex(1, 0) + Complex(0, 1)*2);
    Impedance line(Z = Complex(0.5, 0)*Complex(1, 1));
    Source source;
    Ground ground;
    Complex v[2]; equation v = {load.v, line.v}; public
    Complex i[2] = {load.i, line.i};
    Real P = power(v, i);
  equation
    connect(source.p, line.p);
    connect(line.n, load.p);
    connect(source.n, load.n);
    connect(source.n, ground.p);
    der(T) = P - T;
  end Oven;
end P;
