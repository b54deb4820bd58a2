/* An extended Kalman filter in square roots, as fmilin.design.estimation has it. Sizes stand after a dollar sign. */
//// algebra
static void @add(int k, @real factor, const @real *from, @real *to)
{
    for (int i = 0; i < k; i++) {
        to[i] += factor * from[i];
    }
}

static int @factor(int n, @real *A, int *pivot)
{
    for (int k = 0; k < n; k++) {
        int p = k;

        for (int i = k + 1; i < n; i++) {
            if (fabs(A[(i * n) + k]) > fabs(A[(p * n) + k])) {
                p = i;
            }
        }
        if (!(fabs(A[(p * n) + k]) > 0.0)) {
            return 1;
        }
        pivot[k] = p;
        for (int j = 0; j < n; j++) {
            const @real kept = A[(k * n) + j];

            A[(k * n) + j] = A[(p * n) + j];
            A[(p * n) + j] = kept;
        }
        for (int i = k + 1; i < n; i++) {
            A[(i * n) + k] /= A[(k * n) + k];
            @add(n - k - 1, -A[(i * n) + k], A + (k * n) + k + 1, A + (i * n) + k + 1);
        }
    }
    return 0;
}

static void @solve(int n, const @real *A, const int *pivot, int columns, @real *b)
{
    for (int k = 0; k < n; k++) {
        for (int j = 0; j < columns; j++) {
            const @real kept = b[(k * columns) + j];

            b[(k * columns) + j] = b[(pivot[k] * columns) + j];
            b[(pivot[k] * columns) + j] = kept;
        }
    }
    for (int i = 1; i < n; i++) {
        for (int k = 0; k < i; k++) {
            @add(columns, -A[(i * n) + k], b + (k * columns), b + (i * columns));
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) {
            @add(columns, -A[(i * n) + k], b + (k * columns), b + (i * columns));
        }
        for (int j = 0; j < columns; j++) {
            b[(i * columns) + j] /= A[(i * n) + i];
        }
    }
}

/* S S' = R' R with S [n, n] lower triangular, R [rows, n] overwritten, by Householder's reflections */
static void @triangular(int rows, int n, @real *R, @real *S)
{
    @real s[$LONGEST];

    for (int j = 0; j < n; j++) {
        const @real first = R[(j * n) + j];
        @real norm = 0.0, divisor;

        for (int i = j; i < rows; i++) {
            norm += R[(i * n) + j] * R[(i * n) + j];
        }
        norm = first > 0.0 ? -sqrt(norm) : sqrt(norm);
        divisor = norm * (first - norm);
        if (divisor < 0.0) {
            R[(j * n) + j] = first - norm;
            for (int c = j + 1; c < n; c++) {
                s[c] = 0.0;
            }
            for (int i = j; i < rows; i++) {
                @add(n - j - 1, R[(i * n) + j], R + (i * n) + j + 1, s + j + 1);
            }
            for (int i = j; i < rows; i++) {
                @add(n - j - 1, R[(i * n) + j] / divisor, s + j + 1, R + (i * n) + j + 1);
            }
            R[(j * n) + j] = norm;
        }
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            S[(i * n) + j] = j <= i ? R[(j * n) + i] : 0.0;
        }
    }
}

//// constrained
/* the gradient of the dependent states, G [M, M], and of the coordinates, B [M, P], from H */
static void @split(const @real *H, const int *chart, @real *G, @real *B)
{
    for (int i = 0; i < $M; i++) {
        const @real *row = H + (chart[$N + i] * $N);

        for (int j = 0; j < $M; j++) {
            G[(i * $M) + j] = row[chart[$P + j]];
        }
        for (int j = 0; j < $P; j++) {
            B[(i * $P) + j] = -row[chart[j]];
        }
    }
}

/* Newton's iteration for the dependent states */
static int @restore(@real t, @real *x, const int *chart)
{
    @real h[$H], H[$H * $N], G[$M * $M], B[$M * $P], d[$M];
    int pivot[$M];

    for (int k = 0; k < $ITERATIONS; k++) {
        @real largest = 0.0;

        @surface(t, x, h, H);
        @split(H, chart, G, B);
        for (int i = 0; i < $M; i++) {
            d[i] = h[chart[$N + i]];
        }
        if (@factor($M, G, pivot) != 0) {
            return 1;
        }
        @solve($M, G, pivot, 1, d);
        for (int i = 0; i < $M; i++) {
            const int at = chart[$P + i];
            const @real size = fabs(d[i]) / @scales[at];

            x[at] -= d[i];
            largest = size > largest ? size : largest;
        }
        if (largest <= $QUADRATIC) {
            return 0;
        }
    }
    return 1;
}

/* T = dx/dy [N, P] */
static int @tangent(@real t, const @real *x, const int *chart, @real *T)
{
    @real h[$H], H[$H * $N], G[$M * $M], B[$M * $P];
    int pivot[$M];

    for (int i = 0; i < $N * $P; i++) {
        T[i] = 0.0;
    }
    for (int i = 0; i < $P; i++) {
        T[(chart[i] * $P) + i] = 1.0;
    }
    @surface(t, x, h, H);
    @split(H, chart, G, B);
    if (@factor($M, G, pivot) != 0) {
        return 1;
    }
    @solve($M, G, pivot, $P, B);
    for (int i = 0; i < $M; i++) {
        for (int j = 0; j < $P; j++) {
            T[(chart[$P + i] * $P) + j] = B[(i * $P) + j];
        }
    }
    return 0;
}

/* the best coordinates, by elimination with complete pivoting */
static int @choose(@real *H, int *chart)
{
    int taken[$N], used[$H], kept = 0, others = 0, rows = 0;

    for (int i = 0; i < $H; i++) {
        @real size = 0.0;

        used[i] = 0;
        for (int j = 0; j < $N; j++) {
            H[(i * $N) + j] *= @scales[j];
            size += H[(i * $N) + j] * H[(i * $N) + j];
        }
        size = sqrt(size);
        for (int j = 0; j < $N; j++) {
            H[(i * $N) + j] = ((size > 0.0) && (@free[j] > 0.0)) ? (H[(i * $N) + j] / size) : 0.0;
        }
    }
    for (int j = 0; j < $N; j++) {
        taken[j] = 0;
    }
    for (int k = 0; k < $M; k++) {
        @real largest = 0.0;
        int row = 0, column = 0;

        for (int i = 0; i < $H; i++) {
            for (int j = 0; j < $N; j++) {
                if ((used[i] == 0) && (taken[j] == 0) && (fabs(H[(i * $N) + j]) > largest)) {
                    largest = fabs(H[(i * $N) + j]);
                    row = i;
                    column = j;
                }
            }
        }
        if (!(largest > $NO_PIVOT)) {
            return 1;
        }
        used[row] = 1;
        taken[column] = 1;
        for (int i = 0; i < $H; i++) {
            if (used[i] == 0) {
                @add($N, -H[(i * $N) + column] / H[(row * $N) + column], H + (row * $N), H + (i * $N));
            }
        }
    }
    for (int j = 0; j < $N; j++) {
        if (taken[j] == 0) {
            chart[kept] = j;
            kept++;
        }
        else {
            chart[$P + others] = j;
            others++;
        }
    }
    for (int i = 0; i < $H; i++) {
        if (used[i] != 0) {
            chart[$N + rows] = i;
            rows++;
        }
    }
    return 0;
}

/* other coordinates where these determine the dependent states badly; S moves along */
static int @move(@real t, const @real *x, int *chart, @real *S)
{
    @real T[$N * $P], R[$P * $P], h[$H], H[$H * $N], bent = 0.0;
    int other[$N + $M], differs = 0;

    if (@tangent(t, x, chart, T) != 0) {
        return 1;
    }
    for (int i = 0; i < $M; i++) {
        const int at = chart[$P + i];

        for (int j = 0; j < $P; j++) {
            const @real slope = fabs(T[(at * $P) + j]) * @scales[chart[j]] / @scales[at];

            bent = slope > bent ? slope : bent;
        }
    }
    if (bent <= $BENT) {
        return 0;
    }
    @surface(t, x, h, H);
    if (@choose(H, other) != 0) {
        return 1;
    }
    for (int i = 0; i < $P; i++) {
        differs += other[i] != chart[i];
        for (int j = 0; j < $P; j++) {
            R[(j * $P) + i] = 0.0;
            for (int k = 0; k < $P; k++) {
                R[(j * $P) + i] += T[(other[i] * $P) + k] * S[(k * $P) + j];
            }
        }
    }
    if (differs != 0) {
        @triangular($P, $P, R, S);
        for (int i = 0; i < $N + $M; i++) {
            chart[i] = other[i];
        }
    }
    return 0;
}

//// free
static int @tangent(@real t, const @real *x, const int *chart, @real *T)
{
    (void)t;
    (void)x;
    for (int i = 0; i < $N * $P; i++) {
        T[i] = 0.0;
    }
    for (int i = 0; i < $P; i++) {
        T[(chart[i] * $P) + i] = 1.0;
    }
    return 0;
}

//// always
/* V_i = [A s]^i G sqrt[s] / i!, i < TERMS, each [P, K], from slopes F of the rates along coordinates, then noise */
static void @noise(@real s, const @real *F, const int *chart, @real *V)
{
    const @real root = sqrt(s);

    for (int i = 0; i < $P; i++) {
        for (int j = 0; j < $K; j++) {
            V[(i * $K) + j] = (F[(chart[i] * $W) + $P + j] + @walk[(chart[i] * $K) + j]) * root;
        }
    }
    for (int l = 1; l < $TERMS; l++) {
        for (int i = 0; i < $P; i++) {
            @real *row = V + (((l * $P) + i) * $K);

            for (int j = 0; j < $K; j++) {
                row[j] = 0.0;
            }
            for (int k = 0; k < $P; k++) {
                @add($K, F[(chart[i] * $W) + k] * (s / (@real)l), V + ((((l - 1) * $P) + k) * $K), row);
            }
        }
    }
}

/* one step of Runge and Kutta's method for the states, their tangent, and what noise adds */
static int @advance(@real t, @real s, @real *x, const @real *u, int *chart, @real *S)
{
    const @real after[4] = {0.0, 0.5, 0.5, 1.0}, weights[4] = {1.0, 2.0, 2.0, 1.0};
    @real T[$N * $P], X[$D * $W], f[$N] = {0.0}, F[$N * $W] = {0.0}, at[$N], sum[$N], Sum[$N * $P];
    @real R[($P + ($K * $TERMS)) * $P], V[$TERMS * $P * $K];
    int failed = 0, width = $W;

    if (@tangent(t, x, chart, T) != 0) {
        return 1;
    }
    for (int i = 0; i < $N; i++) {
        at[i] = x[i];
        sum[i] = x[i];
    }
    for (int i = 0; i < $N * $P; i++) {
        Sum[i] = T[i];
    }
    for (int i = 0; i < $D * $W; i++) {
        X[i] = 0.0;
    }
    for (int i = 0; i < $N; i++) {
        for (int j = 0; j < $P; j++) {
            X[(i * $W) + j] = T[(i * $P) + j];
        }
    }
    for (int i = 0; i < $NU; i++) {
        for (int j = 0; j < $K; j++) {
            X[(($N + i) * $W) + $P + j] = @through[(i * $K) + j];
        }
    }
    for (int k = 0; k < 4; k++) {
        if (k > 0) {
            for (int i = 0; i < $N; i++) {
                at[i] = x[i] + (after[k] * s * f[i]);
                for (int j = 0; j < $P; j++) {
                    X[(i * $P) + j] = T[(i * $P) + j] + (after[k] * s * F[(i * width) + j]);
                }
            }
            for (int i = $N * $P; i < $D * $P; i++) {
                X[i] = 0.0;
            }
            width = $P;
        }
        failed += @rates(t + (after[k] * s), at, u, width, X, f, F);
        for (int i = 0; i < $N; i++) {
            sum[i] += weights[k] * (s / 6.0) * f[i];
            @add($P, weights[k] * (s / 6.0), F + (i * width), Sum + (i * $P));
        }
        if (k == 0) {
            @noise(s, F, chart, V);
        }
    }
    for (int i = 0; i < $P; i++) {
        for (int j = 0; j < $P; j++) {
            @real entry = 0.0;

            for (int k = j; k < $P; k++) {
                entry += Sum[(chart[i] * $P) + k] * S[(k * $P) + j];
            }
            R[(j * $P) + i] = entry;
        }
    }
    for (int k = 0; k < $TERMS; k++) {
        for (int j = 0; j < $K; j++) {
            @real *row = R + (($P + (k * $K) + j) * $P);

            for (int i = 0; i < $P; i++) {
                row[i] = 0.0;
                for (int l = k; l < $TERMS; l++) {
                    row[i] += @weights[(l * $TERMS) + k] * V[(((l * $P) + i) * $K) + j];
                }
            }
        }
    }
    for (int i = 0; i < $N; i++) {
        x[i] = sum[i];
    }
    @triangular($P + ($K * $TERMS), $P, R, S);
    return failed + $AFTER_ADVANCE;
}

/* what is measured corrects x and S; returns the normalized innovation squared, or a negative number */
static @real @correct(@real t, @real *x, const @real *u, const @real *y, int *chart, @real *S)
{
    @real T[$N * $P], X[$D * $P], c[$NY], C[$NY * $P], R[($NY + $P) * ($NY + $P)], L[($NY + $P) * ($NY + $P)];
    @real residuals[$NY], e[$P], nis = 0.0;
    int rows[$NY], m = 0, n;

    for (int i = 0; i < $NY; i++) {
        if (!isnan(y[i])) {
            rows[m] = i;
            m++;
        }
    }
    if (m == 0) {
        return 0.0;
    }
    n = m + $P;
    if (@tangent(t, x, chart, T) != 0) {
        return -1.0;
    }
    for (int i = 0; i < $N * $P; i++) {
        X[i] = T[i];
    }
    for (int i = $N * $P; i < $D * $P; i++) {
        X[i] = 0.0;
    }
    if (@outputs(t, x, u, $P, X, c, C) != 0) {
        return -1.0;
    }
    for (int i = 0; i < n * n; i++) {
        R[i] = 0.0;
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j <= i; j++) {
            @real sum = @R[(rows[i] * $NY) + rows[j]];

            for (int k = 0; k < j; k++) {
                sum -= R[(k * n) + i] * R[(k * n) + j];
            }
            R[(j * n) + i] = (i == j) ? sqrt(sum) : (sum / R[(j * n) + j]);
        }
        residuals[i] = y[rows[i]] - c[rows[i]];
    }
    for (int j = 0; j < $P; j++) {
        for (int i = 0; i < m; i++) {
            for (int k = j; k < $P; k++) {
                R[((m + j) * n) + i] += C[(rows[i] * $P) + k] * S[(k * $P) + j];
            }
        }
        for (int k = 0; k < $P; k++) {
            R[((m + j) * n) + m + k] = S[(k * $P) + j];
        }
    }
    @triangular(n, n, R, L);
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < i; j++) {
            residuals[i] -= L[(i * n) + j] * residuals[j];
        }
        residuals[i] /= L[(i * n) + i];
        nis += residuals[i] * residuals[i];
    }
    for (int i = 0; i < $P; i++) {
        e[i] = 0.0;
        for (int j = 0; j < m; j++) {
            e[i] += L[((m + i) * n) + j] * residuals[j];
        }
        for (int j = 0; j < $P; j++) {
            S[(i * $P) + j] = L[((m + i) * n) + m + j];
        }
    }
    for (int i = 0; i < $N; i++) {
        for (int j = 0; j < $P; j++) {
            x[i] += T[(i * $P) + j] * e[j];
        }
    }
    return (($AFTER_CORRECT) == 0) ? nis : -1.0;
}

//// explicit
static int @$NAME(@real t, const @real *x, const @real *u, int k, const @real *X, @real *z, @real *dz)
{
    @real m[$SIZE];

    m[0] = t;
    for (int i = 0; i < $N; i++) {
        m[1 + i] = x[i];
    }
    for (int i = 0; i < $NU; i++) {
        m[1 + $N + i] = u[i];
    }
    @${NAME}_values(m);
    for (int i = 0; i < $NZ; i++) {
        z[i] = m[$AT_Z + i];
    }
    for (int i = 0; i < $NZ * k; i++) {
        dz[i] = 0.0;
    }
$DZ
    return 0;
}

//// implicit
static int @$NAME(@real t, const @real *x, const @real *u, int k, const @real *X, @real *z, @real *dz)
{
    @real m[$SIZE], dw[$NW * $D];
    int pivot[$NW];

    m[0] = t;
    for (int i = 0; i < $N; i++) {
        m[1 + i] = x[i];
    }
    for (int i = 0; i < $NU; i++) {
        m[1 + $N + i] = u[i];
    }
    for (int i = 0; i < $NW * $NW; i++) {
        m[$AT_A + i] = 0.0;
    }
    @${NAME}_system(m);
    if (@factor($NW, m + $AT_A, pivot) != 0) {
        return 1;
    }
    @solve($NW, m + $AT_A, pivot, 1, m + $AT_W);
    @${NAME}_values(m);
    for (int i = 0; i < $NZ; i++) {
        z[i] = m[$AT_Z + i];
    }
    for (int i = 0; i < $NZ * k; i++) {
        dz[i] = 0.0;
    }
    for (int i = 0; i < $NW * k; i++) {
        dw[i] = 0.0;
    }
$DW
    @solve($NW, m + $AT_A, pivot, k, dw);
$DZ
    return 0;
}

//// surface
static void @surface(@real t, const @real *x, @real *h, @real *H)
{
    @real m[$SIZE] = {0.0};

    m[0] = t;
    for (int i = 0; i < $N; i++) {
        m[1 + i] = x[i];
    }
    @surface_values(m);
    for (int i = 0; i < $H; i++) {
        h[i] = m[1 + $N + i];
    }
    for (int i = 0; i < $H * $N; i++) {
        H[i] = m[1 + $N + $H + i];
    }
}

//// step
    @real x[$N], S[$P * $P], nis = 0.0;
    int chart[$N + $M], failed = 0;

    for (int i = 0; i < $N; i++) {
        x[i] = self->x[i];
    }
    for (int i = 0; i < $P * $P; i++) {
        S[i] = self->S[i];
    }
    for (int i = 0; i < $N + $M; i++) {
        chart[i] = (int)self->chart[i];
    }
    for (int k = 0; (k < $SUBSTEPS) && (failed == 0); k++) {
        failed = @advance(self->t[0] + ((@real)k * $STEP), $STEP, x, in, chart, S);
    }
    if (failed == 0) {
        nis = @correct(self->t[0] + $SAMPLE_TIME, x, in, in + $NU, chart, S);
    }
    if ((failed == 0) && (nis >= 0.0)) {
        for (int i = 0; i < $N; i++) {
            self->x[i] = x[i];
        }
        for (int i = 0; i < $P * $P; i++) {
            self->S[i] = S[i];
        }
        for (int i = 0; i < $N + $M; i++) {
            self->chart[i] = (@real)chart[i];
        }
        self->t[0] += $SAMPLE_TIME;
    }
    else {
        failed = 1;
    }
    for (int i = 0; i < $N; i++) {
        out[i] = self->x[i];
    }
    out[$N] = nis;
    out[$N + 1] = (@real)failed;
