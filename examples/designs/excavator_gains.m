% Sampled LQR at every posture of the family in excavator.mat, in Octave or MATLAB; writes gains.csv, one posture a row.
if exist('OCTAVE_VERSION', 'builtin'), pkg load control, end
S = load('excavator.mat');
[P, nu, nb, ns] = size(S.B);
Q = diag([400 400 4 4]);
R = eye(nu)/1e5^2;
rows = zeros(nb*ns, nu*P);
for j = 1:ns
  for i = 1:nb
    d = c2d(ss(S.A(:, :, i, j), S.B(:, :, i, j), eye(P), zeros(P, nu)), 0.02);
    K = dlqr(d.a, d.b, Q, R);
    rows(i + (j - 1)*nb, :) = K(:)';
  end
end
dlmwrite('gains.csv', rows, 'precision', '%.17g');
