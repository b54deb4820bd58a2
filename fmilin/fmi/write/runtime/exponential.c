/* The exact response of x' = A x + B u over a step h:
 *
 *     E = exp(h A),  F = int_0^h exp(s A) ds B  (u constant),  G = int_0^h (h - s) exp(s A) ds B  (u growing as t).
 *
 * Scaling and squaring (Moler and Van Loan, SIAM Review 45, 2003, method 3): a Taylor polynomial of degree 16 for
 * h / 2^s, where the norm of h A is 1/2 or less, so that what is left out is below 1e-19; then s doublings
 *
 *     G(2h) = 2 G + Y G + h F,  F(2h) = 2 F + Y F,  Y(2h) = 2 Y + Y Y,  with Y = E - 1.
 *
 * Y instead of E keeps the digits of slow motions beside fast ones. A is balanced before (Osborne): similar by a
 * diagonal matrix of powers of two, which rounds nothing, with a smaller norm.
 */

enum { DEGREE = 16, MAX_DOUBLINGS = 60 };

/* One sweep of Osborne's balancing: d such that rows and columns of D^-1 A D are of like size. */
static int balance_once(size_t n, const double *A, double *d)
{
    int changed = 0;
    for (size_t i = 0; i < n; i++) {
        double row = 0.0, column = 0.0;
        for (size_t j = 0; j < n; j++) {
            if (j == i) continue;
            row += fabs(A[i * n + j]) * d[j] / d[i];
            column += fabs(A[j * n + i]) * d[i] / d[j];
        }
        if (!(row > 0.0 && column > 0.0 && row < 1e300 && column < 1e300)) continue;
        int exponent = (int)floor(0.5 * log2(row / column) + 0.5);
        if (exponent == 0 || abs(exponent) > 500) continue;
        d[i] = ldexp(d[i], exponent);
        changed = 1;
    }
    return changed;
}

/* Fill in d; return the largest sum of a column of D^-1 A D. */
static double balance(size_t n, const double *A, double *d)
{
    for (size_t i = 0; i < n; i++) d[i] = 1.0;
    for (int sweep = 0; sweep < 10 && balance_once(n, A, d); sweep++) continue;
    double norm = 0.0;
    for (size_t j = 0; j < n; j++) {
        double sum = 0.0;
        for (size_t i = 0; i < n; i++) sum += fabs(A[i * n + j]) * d[j] / d[i];
        norm = fmax(norm, sum);
    }
    return norm;
}

/* V = X V + c B for (n, m) matrices; `column` is room for 2 n numbers. */
static void horner_step(size_t n, size_t m, const double *X, double c, const double *B, double *V, double *column)
{
    for (size_t j = 0; j < m; j++) {
        for (size_t i = 0; i < n; i++) column[i] = V[i * m + j], column[n + i] = c * B[i * m + j];
        add_product(n, n, X, column, column + n);
        for (size_t i = 0; i < n; i++) V[i * m + j] = column[n + i];
    }
}

/* V = a V + b Y V, likewise. */
static void add_passed_on(size_t n, size_t m, const double *Y, double *V, double *column)
{
    for (size_t j = 0; j < m; j++) {
        for (size_t i = 0; i < n; i++) column[i] = V[i * m + j], column[n + i] = 2.0 * column[i];
        add_product(n, n, Y, column, column + n);
        for (size_t i = 0; i < n; i++) V[i * m + j] = column[n + i];
    }
}

/* Y = exp(X) - 1 = sum X^k / k! from k = 1, by the scheme of Paterson and Stockmeyer in powers of X^4. */
static void exponential_less_one(size_t n, const double *X, double *Y, double *room)
{
    const size_t nn = n * n;
    double *X2 = room, *X3 = X2 + nn, *X4 = X3 + nn, *product = X4 + nn, c[DEGREE + 1] = {0.0, 1.0};
    for (int k = 2; k <= DEGREE; k++) c[k] = c[k - 1] / k;
    multiply_square(n, X, X, X2);
    multiply_square(n, X2, X, X3);
    multiply_square(n, X2, X2, X4);
    for (size_t i = 0; i < nn; i++) Y[i] = c[DEGREE] * X4[i];
    for (int block = DEGREE / 4 - 1; block >= 0; block--) {
        const double *b = c + 4 * block;
        for (size_t i = 0; i < nn; i++) Y[i] += b[3] * X3[i] + b[2] * X2[i] + b[1] * X[i];
        for (size_t i = 0; i < n; i++) Y[i * n + i] += b[0];
        if (block == 0) break;
        multiply_square(n, Y, X4, product);
        memcpy(Y, product, sizeof(double) * nn);
    }
}

/* F = h phi_1(X) B and G = h^2 phi_2(X) B with phi_k(X) = sum X^j / (j + k)! and X = h A. */
static void small_responses(size_t n, size_t m, const double *X, const double *B, double h, double *F, double *G,
                            double *column)
{
    double c = 1.0;
    for (int k = 2; k <= DEGREE + 2; k++) c /= k;
    memset(G, 0, sizeof(double) * n * m);
    for (int k = DEGREE; k >= 0; k--) {
        horner_step(n, m, X, c, B, G, column);
        c *= k + 2;
    }
    memcpy(F, G, sizeof(double) * n * m);
    horner_step(n, m, X, 1.0, B, F, column);
    for (size_t i = 0; i < n * m; i++) F[i] *= h, G[i] *= h * h;
}

/* Fill in E (n, n), F and G (n, m). 0 where h A is too large for numbers, -1 where there is no memory. */
static int exponential(size_t n, size_t m, const double *A, const double *B, const double *d, double norm, double h,
                       double *E, double *F, double *G)
{
    int doublings = 0;
    while (doublings <= MAX_DOUBLINGS && !(ldexp(norm * h, -doublings) <= 0.5)) doublings++;
    if (doublings > MAX_DOUBLINGS) return 0;
    const size_t nn = n * n;
    double *room = malloc(sizeof(double) * (5 * nn + n * m + 2 * n + 1));
    if (!room) return -1;
    double *X = room, *rest = X + nn, *scaled = rest + 4 * nn, *column = scaled + n * m, tau = ldexp(h, -doublings);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) X[i * n + j] = tau * (A[i * n + j] * d[j] / d[i]);
        for (size_t j = 0; j < m; j++) scaled[i * m + j] = B[i * m + j] / d[i];
    }
    exponential_less_one(n, X, E, rest);
    small_responses(n, m, X, scaled, tau, F, G, column);
    for (; doublings > 0; doublings--) {
        add_passed_on(n, m, E, G, column);
        for (size_t i = 0; i < n * m; i++) G[i] += tau * F[i];
        add_passed_on(n, m, E, F, column);
        multiply_square(n, E, E, X);
        for (size_t i = 0; i < nn; i++) E[i] = 2.0 * E[i] + X[i];
        tau *= 2.0;
    }
    for (size_t i = 0; i < n; i++) {
        E[i * n + i] += 1.0;
        for (size_t j = 0; j < n; j++) E[i * n + j] *= d[i] / d[j];
        for (size_t j = 0; j < m; j++) F[i * m + j] *= d[i], G[i * m + j] *= d[i];
    }
    free(room);
    return 1;
}
