package Language
  record Pair
    Real a;
    Real b[2];
  end Pair;

  function poly "Horner's scheme, with the derivative"
    input Real c[:];
    input Real x;
    output Real y;
    output Real dy;
  algorithm
    y := 0;
    dy := 0;
    for i in 1:size(c, 1) loop
      dy := dy*x + y;
      y := y*x + c[i];
    end for;
    if x > 3 then
      y := y + 1;
    end if;
  end poly;

  function halved
    input Real x;
    output Real y;
  protected
    Integer k;
  algorithm
    y := x;
    k := 0;
    while k < 3 loop
      y := y*0.5 + x;
      k := k + 1;
    end while;
  end halved;

  function swapped
    input Pair r;
    output Pair q;
  protected
    Real v[3];
  algorithm
    v := zeros(3);
    for i in 1:3 loop
      for j in 1:2 loop
        v[i] := v[i] + i*r.b[j];
      end for;
    end for;
    q.a := r.b[1];
    q.b := {r.a, v[3]};
  end swapped;

  model Words "Each output is one construct, at x = 1.3"
    Real x(start = 1.3, fixed = true);
    Real A[2, 2] = [1, 2; 3, x];
    Pair r = Pair(x, {x^2, 2});
    Pair q;
    Real y, dy;
    parameter Integer n = 4;
    output Real horner = y;
    output Real slope = dy;
    output Real halves = halved(x);
    output Real field = q.b[2];
    output Real total = sum({i*x for i in 1:n});
    output Real times = product({x, 2, 3});
    output Real product12 = A[1, :]*{x, 1};
    output Real entrywise[2] = {x, 2} .* {3, x};
    output Real whole = div(7, 2) + mod(7.5, 3) + integer(3.7) + sign(x);
    output Real extreme = max({x, 2*x, -1}) - min(x, 0.2);
    output Real folded = (transpose(A)*{1, 2})*{x, x};
    output Real chosen = if x > 2 then 0 elseif x > 1 then x^2 else 1;
    output Real last = linspace(0, x, 3)[end];
    output Real diagonals = sum(diagonal({1.0, x})) + sum(fill(x, 2, 2)) + 5;
    output Real turned = cross({1.0, 0.0, 0.0}, {0.0, x, 0.0})*{0.0, 0.0, 1.0};
    output Real angle = atan2(x, 2) + abs(-x) + sqrt(x) + log10(x);
    output Real joined = sum(cat(1, {x, 1}, {2}));
  equation
    der(x) = -x;
    (y, dy) = poly({1, 2, 3}, x);
    q = swapped(r);
  end Words;

  function wrap
    input Real a;
    input Boolean b;
    output Real y;
  algorithm
    y := mod(a, 6) + rem(a, 4);
    if y > 5 and b then
      y := y - 10;
    end if;
  end wrap;

  model Quotients
    input Real u = 20.25;
    Real x(start = 1), w, z, v;
  equation
    w = wrap(u, true);
    z = mod(u, 6) + div(u, 3) + w;
    v = wrap(z, false) + rem(u, 7);
    der(x) = -x + w*x + z*x*10 + v*100*x;
  end Quotients;

  model Domains
    constant Real c = -2, zero = 0;
    Real x(start = 1), y;
  equation
    y = 1/zero;
    der(x) = -x + (if time > 10 then c^0.5 else 2) + (if time > 10 then log(c) else 1)
      + (if time > 10 then exp(1000) + asin(c) else 1) + (if x > 0 then 3 else y);
  end Domains;

  model NoNumber
    constant Real zero = 0;
    Real x(start = 1);
  equation
    der(x) = -x + zero*log(zero);
  end NoNumber;
end Language;
