/* Kalman filters in square roots, as fmilin.design.estimation has them. Sizes stand after a dollar sign. */
//// algebra
static void @add(int k, @real factor, const @real *from, @real *to)
{
    for (int i = 0; i < k; i++) {
        to[i] += factor * from[i];
    }
}

static @real @dot(int k, const @real *a, const @real *b)
{
    @real s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
    int i = 0;

    for (; i < k - 3; i += 4) {
        s0 += a[i] * b[i];
        s1 += a[i + 1] * b[i + 1];
        s2 += a[i + 2] * b[i + 2];
        s3 += a[i + 3] * b[i + 3];
    }
    for (; i < k; i++) {
        s0 += a[i] * b[i];
    }
    return (s0 + s1) + (s2 + s3);
}

/* to += factors' times the first n rows of a lower triangular S */
static void @combine(int n, const @real *factors, const @real *S, @real *to)
{
    int i = 0;

    for (; i < n - 3; i += 4) {
        const @real *row = S + (i * $P), a = factors[i], b = factors[i + 1], c = factors[i + 2], d = factors[i + 3];

        for (int j = 0; j < i + 4; j++) {
            to[j] += ((a * row[j]) + (b * row[$P + j])) + ((c * row[(2 * $P) + j]) + (d * row[(3 * $P) + j]));
        }
    }
    for (; i < n; i++) {
        @add(i + 1, factors[i], S + (i * $P), to);
    }
}

/* L U with interchanges; what is zero takes no time, and diagonals of U are kept as what they are divided by */
static int @factor(int n, @real *A, int *pivot)
{
    for (int k = 0; k < n; k++) {
        @real *top = A + (k * n);
        int p = k;

        for (int i = k + 1; i < n; i++) {
            if (fabs(A[(i * n) + k]) > fabs(A[(p * n) + k])) {
                p = i;
            }
        }
        pivot[k] = p;
        if (!(fabs(A[(p * n) + k]) > 0.0)) {
            return 1;
        }
        if (p != k) {
            for (int j = 0; j < n; j++) {
                const @real kept = top[j];

                top[j] = A[(p * n) + j];
                A[(p * n) + j] = kept;
            }
        }
        top[k] = 1.0 / top[k];
        for (int i = k + 1; i < n; i++) {
            @real *row = A + (i * n);

            if (fabs(row[k]) > 0.0) {
                row[k] *= top[k];
                @add(n - k - 1, -row[k], top + k + 1, row + k + 1);
            }
        }
    }
    return 0;
}

static void @solve(int n, const @real *A, const int *pivot, int columns, @real *b)
{
    for (int k = 0; k < n; k++) {
        if (pivot[k] != k) {
            for (int j = 0; j < columns; j++) {
                const @real kept = b[(k * columns) + j];

                b[(k * columns) + j] = b[(pivot[k] * columns) + j];
                b[(pivot[k] * columns) + j] = kept;
            }
        }
    }
    for (int i = 1; i < n; i++) {
        for (int k = 0; k < i; k++) {
            if (fabs(A[(i * n) + k]) > 0.0) {
                @add(columns, -A[(i * n) + k], b + (k * columns), b + (i * columns));
            }
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) {
            if (fabs(A[(i * n) + k]) > 0.0) {
                @add(columns, -A[(i * n) + k], b + (k * columns), b + (i * columns));
            }
        }
        for (int j = 0; j < columns; j++) {
            b[(i * columns) + j] *= A[(i * n) + i];
        }
    }
}

/* G [n, width] becomes [L 0] with the same G G', L lower triangular with a diagonal that is not negative, by
   Householder's reflections */
static void @triangular(int n, int width, @real *G)
{
    @real along[$LONGEST];

    for (int j = 0; j < n; j++) {
        @real *v = G + (j * width) + j;
        const int k = width - j;
        @real size, diagonal, divisor;

        for (int i = j; i < n; i++) {
            along[i] = @dot(k, v, G + (i * width) + j);
        }
        size = sqrt(along[j]);
        diagonal = v[0] > 0.0 ? -size : size;
        divisor = diagonal * (v[0] - diagonal);
        if (divisor < 0.0) {
            const @real scale = 1.0 / divisor;

            v[0] -= diagonal;
            for (int i = j + 1; i < n; i++) {
                @real *row = G + (i * width) + j;

                @add(k, (along[i] - (diagonal * row[0])) * scale, v, row);
            }
            v[0] = diagonal;
            for (int i = 1; i < k; i++) {
                v[i] = 0.0;
            }
        }
        for (int i = j; (i < n) && (size > 0.0) && (diagonal < 0.0); i++) {
            G[(i * width) + j] = -G[(i * width) + j];
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
static int @restore(@real t, @real *x, const @real *u, const int *chart)
{
    @real h[$H], H[$H * $N], G[$M * $M], B[$M * $P], d[$M];
    int pivot[$M];

    for (int k = 0; k < $ITERATIONS; k++) {
        @real largest = 0.0;

        if (@surface(t, x, u, h, H) != 0) {
            return 1;
        }
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
static int @tangent(@real t, const @real *x, const @real *u, const int *chart, @real *T)
{
    @real h[$H], H[$H * $N], G[$M * $M], B[$M * $P];
    int pivot[$M];

    for (int i = 0; i < $N * $P; i++) {
        T[i] = 0.0;
    }
    for (int i = 0; i < $P; i++) {
        T[(chart[i] * $P) + i] = 1.0;
    }
    if (@surface(t, x, u, h, H) != 0) {
        return 1;
    }
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
            /* a row that is rounding, here or everywhere, is not a constraint */
            H[(i * $N) + j] = ((@usual[i] > 0.0) && (size > ($NO_ROW * @usual[i])) && (@free[j] > 0.0))
                                  ? (H[(i * $N) + j] / size) : 0.0;
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
static int @move(@real t, const @real *x, const @real *u, int *chart, @real *S)
{
    @real T[$N * $P], G[$P * $P], h[$H], H[$H * $N], bent = 0.0;
    int other[$N + $M], differs = 0;

    if (@tangent(t, x, u, chart, T) != 0) {
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
    if ((@surface(t, x, u, h, H) != 0) || (@choose(H, other) != 0)) {
        return 1;
    }
    for (int i = 0; i < $P; i++) {
        differs += other[i] != chart[i];
        for (int j = 0; j < $P; j++) {
            G[(i * $P) + j] = 0.0;
        }
        @combine($P, T + (other[i] * $P), S, G + (i * $P));
    }
    if (differs != 0) {
        @triangular($P, $P, G);
        for (int i = 0; i < $P * $P; i++) {
            S[i] = G[i];
        }
        for (int i = 0; i < $N + $M; i++) {
            chart[i] = other[i];
        }
$TELL_SWITCH    }
    return 0;
}

//// free
static int @tangent(@real t, const @real *x, const @real *u, const int *chart, @real *T)
{
    (void)t;
    (void)x;
    (void)u;
    for (int i = 0; i < $N * $P; i++) {
        T[i] = 0.0;
    }
    for (int i = 0; i < $P; i++) {
        T[(chart[i] * $P) + i] = 1.0;
    }
    return 0;
}

static int @restore(@real t, @real *x, const @real *u, const int *chart)
{
    (void)t;
    (void)x;
    (void)u;
    (void)chart;
    return 0;
}

static int @move(@real t, const @real *x, const @real *u, int *chart, @real *S)
{
    (void)t;
    (void)x;
    (void)u;
    (void)chart;
    (void)S;
    return 0;
}

//// always
/* what noise adds to columns P, P + 1, .. of G: of V_l = [A s]^l G_w sqrt[s] / l!, l < TERMS, from slopes F of the
   rates along coordinates, then noise */
static void @noise(@real s, const @real *F, const int *chart, @real *G)
{
    const @real root = sqrt(s);
    @real A[$P * $P], V[$TERMS * $K * $P];

    for (int i = 0; i < $P; i++) {
        for (int k = 0; k < $P; k++) {
            A[(k * $P) + i] = F[(chart[i] * $W) + k];
        }
        for (int j = 0; j < $K; j++) {
            V[(j * $P) + i] = (F[(chart[i] * $W) + $P + j] + @walk[(chart[i] * $K) + j]) * root;
        }
    }
    for (int l = 1; l < $TERMS; l++) {
        for (int j = 0; j < $K; j++) {
            const @real *last = V + ((((l - 1) * $K) + j) * $P);
            @real *next = V + (((l * $K) + j) * $P);

            for (int i = 0; i < $P; i++) {
                next[i] = 0.0;
            }
            for (int k = 0; k < $P; k++) {
                if (fabs(last[k]) > 0.0) {
                    @add($P, last[k] * (s / (@real)l), A + (k * $P), next);
                }
            }
        }
    }
    for (int k = 0; k < $TERMS; k++) {
        for (int j = 0; j < $K; j++) {
            @real sum[$P] = {0.0};

            for (int l = k; l < $TERMS; l++) {
                @add($P, @weights[(l * $TERMS) + k], V + (((l * $K) + j) * $P), sum);
            }
            for (int i = 0; i < $P; i++) {
                G[(i * $WIDE) + $P + (k * $K) + j] = sum[i];
            }
        }
    }
}

/* which outputs have come, and a factor of the covariance of their noise, lower triangular; returns how many */
static int @select(const @real *y, int *rows, @real *noise)
{
    int m = 0;

    for (int i = 0; i < $NY; i++) {
        if ((y[i] > @ends[i]) && (y[i] < @ends[$NY + i])) {
            rows[m] = i;
            m++;
        }
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j <= i; j++) {
            const @real sum = @R[(rows[i] * $NY) + rows[j]] - @dot(j, noise + (i * $NY), noise + (j * $NY));

            noise[(i * $NY) + j] = (i == j) ? sqrt(sum) : (sum / noise[(j * $NY) + j]);
        }
    }
    return m;
}

//// renewed
/* the noise of the next sample, the last states, in place of that of the last one: independent of all before */
static void @renew(@real *x, @real *S)
{
    for (int i = 0; i < $RENEWED; i++) {
        x[$SHOWN + i] = 0.0;
        for (int j = 0; j < $P; j++) {
            const int column = j - ($P - $RENEWED);

            S[(($P - $RENEWED + i) * $P) + j] = (column < 0) ? 0.0 : @renewed[(i * $RENEWED) + column];
        }
    }
}

//// lasting
static void @renew(@real *x, @real *S)
{
    (void)x;
    (void)S;
}

//// extended
/* one step of Runge and Kutta's method for the states, their tangent, and what noise adds */
static int @advance(@real t, @real s, @real *x, const @real *u, int *chart, @real *S)
{
    const @real after[5] = {0.0, 0.5, 0.5, 1.0, 0.0}, weights[4] = {1.0, 2.0, 2.0, 1.0};
    @real T[$N * $P], X[$D * $W] = {0.0}, f[$N], F[$N * $W], at[$N], sum[$N], Sum[$N * $P], G[$P * $WIDE];

    if (@tangent(t, x, u, chart, T) != 0) {
        return 1;
    }
    for (int i = 0; i < $N; i++) {
        at[i] = x[i];
        sum[i] = x[i];
        for (int j = 0; j < $P; j++) {
            X[(i * $W) + j] = T[(i * $P) + j];
            Sum[(i * $P) + j] = T[(i * $P) + j];
        }
    }
    for (int i = 0; i < $NU; i++) {
        for (int j = 0; j < $K; j++) {
            X[(($N + i) * $W) + $P + j] = @through[(i * $K) + j];
        }
    }
    for (int k = 0; k < 4; k++) {
        const @real share = weights[k] * (s / 6.0), ahead = after[k + 1] * s;

        if (@rates(t + (after[k] * s), at, u, X, f, F) != 0) {
            return 1;
        }
        for (int i = 0; i < $N; i++) {
            sum[i] += share * f[i];
            at[i] = x[i] + (ahead * f[i]);
            for (int j = 0; j < $P; j++) {
                const @real slope = F[(i * $W) + j], base = T[(i * $P) + j];

                Sum[(i * $P) + j] += share * slope;
                X[(i * $W) + j] = base + (ahead * slope);
            }
        }
        if (k == 0) {
            @noise(s, F, chart, G);
        }
    }
    for (int i = 0; i < $N; i++) {
        x[i] = sum[i];
    }
    for (int i = 0; i < $P; i++) {
        for (int j = 0; j < $P; j++) {
            G[(i * $WIDE) + j] = 0.0;
        }
        @combine($P, Sum + (chart[i] * $P), S, G + (i * $WIDE));
    }
    @triangular($P, $WIDE, G);
    for (int i = 0; i < $P; i++) {
        for (int j = 0; j < $P; j++) {
            S[(i * $P) + j] = G[(i * $WIDE) + j];
        }
    }
    if (@restore(t + s, x, u, chart) != 0) {
        return 1;
    }
    return @move(t + s, x, u, chart, S);
}

/* Rows of B, one for each coordinate: those of S' C', then of S' from its end. Measurement by measurement a row of a
   factor of the noise is rotated with them, which leaves S triangular. Returns the normalized innovation squared, and
   the correction e; of the residuals, each in its own standard deviation, and these. */
static @real @update(int m, const @real *noise, @real *residuals, @real *deviations, @real *B, @real *e)
{
    @real nis = 0.0;

    for (int i = 0; i < $P; i++) {
        e[i] = 0.0;
    }
    for (int j = 0; j < m; j++) {
        @real row[$P + $NY] = {0.0}, sizes[$P + 1], squares = 0.0, whitened;

        for (int l = j; l < m; l++) {
            row[l] = noise[(l * $NY) + j];
        }
        sizes[$P] = row[j];
        squares = row[j] * row[j];
        for (int i = $P - 1; i >= 0; i--) {
            squares += B[(i * ($P + $NY)) + j] * B[(i * ($P + $NY)) + j];
            sizes[i] = sqrt(squares);
        }
        for (int i = $P - 1; i >= 0; i--) {
            @real *other = B + (i * ($P + $NY));
            const @real scale = 1.0 / sizes[i], cosine = sizes[i + 1] * scale, sine = other[j] * scale;

            for (int l = j + 1; l < m + $P - i; l++) {
                const @real kept = row[l];

                row[l] = (cosine * kept) + (sine * other[l]);
                other[l] = (cosine * other[l]) - (sine * kept);
            }
        }
        whitened = residuals[j] / sizes[0];
        residuals[j] = whitened;
        deviations[j] = sizes[0];
        nis += whitened * whitened;
        for (int l = j + 1; l < m; l++) {
            residuals[l] -= row[l] * whitened;
        }
        for (int i = 0; i < $P; i++) {
            e[i] += whitened * row[m + $P - 1 - i];
        }
    }
    return nis;
}

/* what is measured corrects x and S; returns the normalized innovation squared, or a negative number */
static @real @correct(@real t, @real *x, const @real *u, const @real *y, int *chart, @real *S)
{
    @real tangents[$TANGENTS * $D * $P] = {0.0}, c[$NY], C[$NY * $P], B[$P * ($P + $NY)], noise[$NY * $NY] = {0.0};
    @real residuals[$NY], deviations[$NY], e[$P] = {0.0}, before[$N], nis = 0.0;
    int rows[$NY], settled = 0;
    const int m = @select(y, rows, noise);

    if (m == 0) {
        return 0.0;
    }
    for (int i = 0; i < $N; i++) {
        before[i] = x[i];
    }
    for (int round = 0; (round < $CORRECTIONS) && (settled == 0); round++) {
        @real last[$P], now, *T = tangents + ((round == 0) ? 0 : ($D * $P));

        if (@tangent(t, x, u, chart, T) != 0) {
            return -1.0;
        }
        if (@outputs(t, x, u, T, c, C) != 0) {
            return -1.0;
        }
        for (int i = 0; i < m; i++) {
            residuals[i] = y[rows[i]] - c[rows[i]];
$WRAP_RESIDUAL$TELL_RESIDUAL            residuals[i] += @dot($P, C + (rows[i] * $P), e);
        }
        for (int l = 0; l < m; l++) {
            @real along[$P] = {0.0};

            @combine($P, C + (rows[l] * $P), S, along);
            for (int i = 0; i < $P; i++) {
                B[(i * ($P + $NY)) + l] = along[i];
            }
        }
        for (int i = 0; i < $P; i++) {
            last[i] = e[i];
            for (int k = i; k < $P; k++) {
                B[(i * ($P + $NY)) + m + $P - 1 - k] = S[(k * $P) + i];
            }
        }
        now = @update(m, noise, residuals, deviations, B, e);
        nis = (round == 0) ? now : nis;
$TELL_UPDATE        settled = (round > 0) ? 1 : 0;
        for (int i = 0; (i < $P) && (settled != 0); i++) {
            const @real change = e[i] - last[i], *row = S + (i * $P);

            settled = (fabs(change) <= $SETTLED * sqrt(@dot(i + 1, row, row))) ? 1 : 0;
        }
        for (int i = 0; i < $N; i++) {
            x[i] = before[i] + @dot($P, tangents + (i * $P), e);
        }
        if (@restore(t, x, u, chart) != 0) {
            return -1.0;
        }
    }
    for (int i = 0; i < $P; i++) {
        for (int j = 0; j <= i; j++) {
            S[(i * $P) + j] = B[(j * ($P + $NY)) + m + $P - 1 - i];
        }
    }
    return (@move(t, x, u, chart, S) == 0) ? nis : -1.0;
}

//// unscented
/* the sigma points, [2 P + 1, N], the estimate first */
static int @spread(
    @real t, const @real *x, const @real *u, const int *chart, const @real *S, const @real *T, @real *points)
{
    const @real distance = sqrt($P.0 + $KAPPA);

    for (int p = 0; p < (2 * $P) + 1; p++) {
        @real *point = points + (p * $N);

        for (int i = 0; i < $N; i++) {
            point[i] = x[i];
        }
        if (p > 0) {
            const int column = (p - 1) / 2;

            for (int i = 0; i < $N; i++) {
                for (int k = column; k < $P; k++) {
                    point[i] += (((p % 2) == 1) ? distance : -distance) * T[(i * $P) + k] * S[(k * $P) + column];
                }
            }
            if (@restore(t, point, u, chart) != 0) {
                return 1;
            }
        }
    }
    return 0;
}

/* Runge and Kutta's method for the states alone, over s seconds */
static int @later(@real t, @real s, @real *x, const @real *u, const int *chart)
{
    const @real after[5] = {0.0, 0.5, 0.5, 1.0, 0.0}, weights[4] = {1.0, 2.0, 2.0, 1.0}, h = s / $SUBSTEPS.0;
    @real f[$N], at[$N], none = 0.0;

    for (int step = 0; step < $SUBSTEPS; step++) {
        @real now = t + ((@real)step * h), sum[$N];

        for (int i = 0; i < $N; i++) {
            at[i] = x[i];
            sum[i] = x[i];
        }
        for (int k = 0; k < 4; k++) {
            if (@motion(now + (after[k] * h), at, u, &none, f, &none) != 0) {
                return 1;
            }
            for (int i = 0; i < $N; i++) {
                sum[i] += weights[k] * (h / 6.0) * f[i];
                at[i] = x[i] + (after[k + 1] * h * f[i]);
            }
        }
        for (int i = 0; i < $N; i++) {
            x[i] = sum[i];
        }
        if (@restore(now + h, x, u, chart) != 0) {
            return 1;
        }
    }
    return 0;
}

/* a factor L [P, P] of what noise adds in s seconds, slopes held */
static int @added(@real t, @real s, const @real *x, const @real *u, const int *chart, const @real *T, @real *L)
{
    const @real h = s / $SUBSTEPS.0;
    @real X[$D * $W] = {0.0}, f[$N], F[$N * $W], V[$P * $WIDE] = {0.0}, G[$P * $WIDE], Phi[$P * $P], term[$P * $P];

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
    if (@rates(t, x, u, X, f, F) != 0) {
        return 1;
    }
    @noise(h, F, chart, V);
    for (int i = 0; i < $P * $P; i++) {
        L[i] = 0.0;
        term[i] = ((i % ($P + 1)) == 0) ? 1.0 : 0.0;
        Phi[i] = term[i];
    }
    for (int l = 1; l < $TERMS; l++) {
        @real next[$P * $P] = {0.0};

        for (int i = 0; i < $P; i++) {
            for (int k = 0; k < $P; k++) {
                @add($P, F[(chart[i] * $W) + k] * (h / (@real)l), term + (k * $P), next + (i * $P));
            }
        }
        for (int i = 0; i < $P * $P; i++) {
            term[i] = next[i];
            Phi[i] += next[i];
        }
    }
    for (int step = 0; step < $SUBSTEPS; step++) {
        for (int i = 0; i < $P * $WIDE; i++) {
            G[i] = V[i];
        }
        for (int i = 0; i < $P; i++) {
            @combine($P, Phi + (i * $P), L, G + (i * $WIDE));
        }
        @triangular($P, $WIDE, G);
        for (int i = 0; i < $P * $P; i++) {
            L[i] = G[((i / $P) * $WIDE) + (i % $P)];
        }
    }
    return 0;
}

/* a sample later: where the points arrive */
static int @advance(@real t, @real s, @real *x, const @real *u, int *chart, @real *S)
{
    @real T[$N * $P], points[((2 * $P) + 1) * $N], L[$P * $P], G[$P * ((3 * $P) + 1)];
    const int wide = (3 * $P) + 1;

    if ((@tangent(t, x, u, chart, T) != 0) || (@spread(t, x, u, chart, S, T, points) != 0)) {
        return 1;
    }
    if (@added(t, s, x, u, chart, T, L) != 0) {
        return 1;
    }
    for (int p = 0; p < (2 * $P) + 1; p++) {
        if (@later(t, s, points + (p * $N), u, chart) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < $N; i++) {
        x[i] = points[i];
    }
    for (int i = 0; i < $P; i++) {
        @real mean = 0.0;

        for (int p = 0; p < (2 * $P) + 1; p++) {
            mean += ((p == 0) ? $FIRST : $OTHERS) * points[(p * $N) + chart[i]];
        }
        x[chart[i]] = mean;
        for (int p = 0; p < (2 * $P) + 1; p++) {
            G[(i * wide) + p] = sqrt((p == 0) ? $FIRST : $OTHERS) * (points[(p * $N) + chart[i]] - mean);
        }
        for (int k = 0; k < $P; k++) {
            G[(i * wide) + (2 * $P) + 1 + k] = L[(i * $P) + k];
        }
    }
    @triangular($P, wide, G);
    for (int i = 0; i < $P * $P; i++) {
        S[i] = G[((i / $P) * wide) + (i % $P)];
    }
    if (@restore(t + s, x, u, chart) != 0) {
        return 1;
    }
    return @move(t + s, x, u, chart, S);
}

/* what is measured corrects x and S; returns the normalized innovation squared, or a negative number */
static @real @correct(@real t, @real *x, const @real *u, const @real *y, int *chart, @real *S)
{
    @real T[$N * $P], points[((2 * $P) + 1) * $N], c[((2 * $P) + 1) * $NY], noise[$NY * $NY] = {0.0}, none = 0.0;
    @real G[($P + $NY) * ((2 * $P) + 1 + $NY)] = {0.0}, residuals[$NY], nis = 0.0;
    int rows[$NY];
    const int m = @select(y, rows, noise), wide = (2 * $P) + 1 + m;

    if (m == 0) {
        return 0.0;
    }
    if ((@tangent(t, x, u, chart, T) != 0) || (@spread(t, x, u, chart, S, T, points) != 0)) {
        return -1.0;
    }
    for (int p = 0; p < (2 * $P) + 1; p++) {
        if (@outputs(t, points + (p * $N), u, &none, c + (p * $NY), &none) != 0) {
            return -1.0;
        }
    }
$WRAP_POINTS    for (int i = 0; i < m; i++) {
        @real mean = 0.0;

        for (int p = 0; p < (2 * $P) + 1; p++) {
            mean += ((p == 0) ? $FIRST : $OTHERS) * c[(p * $NY) + rows[i]];
        }
        for (int p = 0; p < (2 * $P) + 1; p++) {
            G[(i * wide) + p] = sqrt((p == 0) ? $FIRST : $OTHERS) * (c[(p * $NY) + rows[i]] - mean);
        }
        for (int j = 0; j <= i; j++) {
            G[(i * wide) + (2 * $P) + 1 + j] = noise[(i * $NY) + j];
        }
        residuals[i] = y[rows[i]] - mean;
$WRAP_MEAN$TELL_MEAN    }
    for (int i = 0; i < $P; i++) {
        for (int p = 0; p < (2 * $P) + 1; p++) {
            const @real off = points[(p * $N) + chart[i]] - x[chart[i]];

            G[((m + i) * wide) + p] = sqrt((p == 0) ? $FIRST : $OTHERS) * off;
        }
    }
    @triangular(m + $P, wide, G);
    for (int i = 0; i < m; i++) {
        residuals[i] = (residuals[i] - @dot(i, G + (i * wide), residuals)) / G[(i * wide) + i];
        nis += residuals[i] * residuals[i];
$TELL_WHITENED    }
    for (int i = 0; i < $P; i++) {
        const @real e = @dot(m, G + ((m + i) * wide), residuals);

        for (int k = 0; k < $N; k++) {
            x[k] += T[(k * $P) + i] * e;
        }
        for (int j = 0; j < $P; j++) {
            S[(i * $P) + j] = G[((m + i) * wide) + m + j];
        }
    }
    if ((@restore(t, x, u, chart) != 0) || (@move(t, x, u, chart, S) != 0)) {
        return -1.0;
    }
    return nis;
}

//// sample
/* a sample later */
static int @predict(@real t, @real *x, const @real *u, int *chart, @real *S)
{
    int failed = 0;

    @renew(x, S);
    for (int k = 0; (k < $ADVANCES) && (failed == 0); k++) {
        failed = @advance(t + ((@real)k * $STEP), $STEP, x, u, chart, S);
    }
    return failed;
}

//// explicit
static int @$NAME(@real t, const @real *x, const @real *u, const @real *X, @real *z, @real *dz)
{
    @real m[$SIZE];

    (void)X;
    (void)dz;
    m[0] = t;
    for (int i = 0; i < $N; i++) {
        m[1 + i] = x[i];
    }
    for (int i = 0; i < $NU; i++) {
        m[1 + $N + i] = u[i];
    }
$PARAMETERS    @${NAME}_values(m);
    for (int i = 0; i < $NZ; i++) {
        z[i] = m[$AT_Z + i];
    }
$DZ
    return 0;
}

//// implicit
static int @$NAME(@real t, const @real *x, const @real *u, const @real *X, @real *z, @real *dz)
{
    @real m[$SIZE], dw[($NW * $ALONG) + 1];
    int pivot[$NW];

    (void)X;
    (void)dz;
    m[0] = t;
    for (int i = 0; i < $N; i++) {
        m[1 + i] = x[i];
    }
    for (int i = 0; i < $NU; i++) {
        m[1 + $N + i] = u[i];
    }
$PARAMETERS    for (int i = 0; i < $NW * $NW; i++) {
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
$DW
    @solve($NW, m + $AT_A, pivot, $ALONG, dw);
$DZ
    return 0;
}

//// newton
/* unknowns of equations that are not linear, by Newton's iteration from the guess as long as its steps shrink */
static int @$NAME(@real t, const @real *x, const @real *u, const @real *X, @real *z, @real *dz)
{
    @real m[$SIZE], dw[($NW * $ALONG) + 1], previous = 0.0;
    int pivot[$NW], settled = 0;

    (void)X;
    (void)dz;
    m[0] = t;
    for (int i = 0; i < $N; i++) {
        m[1 + i] = x[i];
    }
    for (int i = 0; i < $NU; i++) {
        m[1 + $N + i] = u[i];
    }
$PARAMETERS    for (int i = 0; i < $NW; i++) {
        m[$AT_W + i] = @guess[i];
    }
    for (int k = 0; k <= $NEWTON; k++) {
        @real largest = 0.0;

        for (int i = 0; i < $NW * $NW; i++) {
            m[$AT_A + i] = 0.0;
        }
        @${NAME}_system(m);
        if (@factor($NW, m + $AT_A, pivot) != 0) {
            return 1;
        }
        if (settled != 0) {
            break; /* these are the factors at the solution */
        }
        @solve($NW, m + $AT_A, pivot, 1, m + $AT_DW);
        for (int i = 0; i < $NW; i++) {
            const @real step = m[$AT_DW + i], w = m[$AT_W + i] + step;
            const @real size = (fabs(w) > @unknown_sizes[i]) ? fabs(w) : @unknown_sizes[i];

            m[$AT_W + i] = w;
            largest = (fabs(step) / size <= largest) ? largest : (fabs(step) / size);
        }
        settled = ((largest <= $CONVERGED) || ((largest <= $STALLED) && (largest > $CONTRACTION * previous))) ? 1 : 0;
        if ((settled == 0) && (k > 0) && !(largest <= $CONTRACTION * previous)) {
            return 1;
        }
        previous = largest;
    }
    if (settled == 0) {
        return 1;
    }
    @${NAME}_values(m);
    for (int i = 0; i < $NZ; i++) {
        z[i] = m[$AT_Z + i];
    }
$DW
    @solve($NW, m + $AT_A, pivot, $ALONG, dw);
$DZ
    return 0;
}

//// surface
static int @surface(@real t, const @real *x, const @real *u, @real *h, @real *H)
{
    @real m[$SIZE] = {0.0};

    (void)u;
    m[0] = t;
    for (int i = 0; i < $N; i++) {
        m[1 + i] = x[i];
    }
$INPUTS$PARAMETERS    @surface_values(m);
    for (int i = 0; i < $H; i++) {
        h[i] = m[$AT_H + i];
    }
    for (int i = 0; i < $H * $N; i++) {
        H[i] = m[$AT_H + $H + i];
    }
    return 0;
}

//// surface_of_rates
/* constraints with rates that need accelerations: the invariants and their gradient along the states */
static int @surface(@real t, const @real *x, const @real *u, @real *h, @real *H)
{
    @real X[$D * $N] = {0.0};

    for (int i = 0; i < $N; i++) {
        X[(i * $N) + i] = 1.0;
    }
    return @invariants(t, x, u, X, h, H);
}

//// calls
/* An estimate, where a call finds and leaves it. */
typedef struct {
    double *x, *S, *chart, *innovations, *whitened;
} @estimate;

static void @open(@estimate *e, double *m)
{
    m[1] = 0.0;
    m[2] = 0.0;
    e->x = m + 3;
    e->S = e->x + $N;
    e->chart = e->S + ($P * $P);
    e->innovations = e->chart + $N + $M;
    e->whitened = e->innovations + $NY;
    @switches = m + 1;
    @determinant = m + 2;
    @innovations = e->innovations;
    @whitened = e->whitened;
    @turns = e->whitened + $NY;
}

static int @is_finite(int count, const double *values)
{
    for (int i = 0; i < count; i++) {
        if (!(fabs(values[i]) <= 1.7976931348623157e308)) {
            return 0;
        }
    }
    return 1;
}

static void @begin(const @estimate *e, double *x, double *S, int *chart)
{
    memcpy(x, e->x, sizeof(double) * $N);
    memcpy(S, e->S, sizeof(double) * $P * $P);
    for (int i = 0; i < $N + $M; i++) {
        chart[i] = (int)e->chart[i];
    }
}

/* What was computed becomes the estimate, where it is numbers. */
static int @finish(@estimate *e, const double *x, const double *S, const int *chart)
{
    if ((@is_finite($N, x) == 0) || (@is_finite($P * $P, S) == 0)) {
        return 1;
    }
    memcpy(e->x, x, sizeof(double) * $N);
    memcpy(e->S, S, sizeof(double) * $P * $P);
    for (int i = 0; i < $N + $M; i++) {
        e->chart[i] = (double)chart[i];
    }
    return 0;
}

static int @sample_ahead(@estimate *e, double t, const double *u)
{
    double x[$N], S[$P * $P];
    int chart[$N + $M];

    @begin(e, x, S, chart);
    return ((@predict(t, x, u, chart, S) != 0) || (@finish(e, x, S, chart) != 0)) ? 1 : 0;
}

static int @measurement(@estimate *e, double t, const double *u, const double *y)
{
    double x[$N], S[$P * $P];
    int chart[$N + $M];

    @begin(e, x, S, chart);
    @determinant[0] = 0.0;
    for (int i = 0; i < $NY; i++) {
        e->innovations[i] = NAN;
        e->whitened[i] = NAN;
    }
    return (!(@correct(t, x, u, y, chart, S) >= 0.0) || (@finish(e, x, S, chart) != 0)) ? 1 : 0;
}

/* Of m: time, changes of coordinates, logarithm of a determinant, x, S, chart, innovations, the same in their standard
   deviations, turns, u, y. Returns 1, and leaves x, S and the chart, where there is no answer. */
OUT int predict_sample(const double *tables, double *m)
{
    @estimate e;

    @enter(tables);
    @open(&e, m);
    return @sample_ahead(&e, m[0], @turns + $NY);
}

OUT int correct_sample(const double *tables, double *m)
{
    @estimate e;

    @enter(tables);
    @open(&e, m);
    return @measurement(&e, m[0], @turns + $NY, @turns + $NY + $NU);
}

/* Samples of a record by rows (u, y), as far as there are answers: returns how many. A row of the result is the time, x,
   the standard deviations of x, innovations, these in their deviations, the logarithm of the determinant. */
OUT long filter_record(const double *tables, double *m, long count, const double *rows, double *result)
{
    @estimate e;

    @enter(tables);
    @open(&e, m);
    for (long k = 0; k < count; k++) {
        const double *u = rows + (k * ($NU + $NY)), *y = u + $NU, later = m[0] + $SAMPLE_TIME;
        double *told = result + (k * ((2 * $N) + (2 * $NY) + 2)), T[$N * $P], before[3 + $N + ($P * $P) + $N + $M];
        int chart[$N + $M], failed;

        memcpy(before, m, sizeof before);
        failed = (@sample_ahead(&e, m[0], u) != 0) || (@measurement(&e, later, u, y) != 0);
        for (int i = 0; i < $N + $M; i++) {
            chart[i] = (int)e.chart[i];
        }
        if ((failed != 0) || (@tangent(later, e.x, u, chart, T) != 0)) {
            memcpy(m, before, sizeof before);
            return k;
        }
        m[0] = later;
        told[0] = later;
        memcpy(told + 1, e.x, sizeof(double) * $N);
        for (int i = 0; i < $N; i++) {
            double row[$P] = {0.0};

            @combine($P, T + (i * $P), e.S, row);
            told[1 + $N + i] = sqrt(@dot($P, row, row));
        }
        memcpy(told + 1 + (2 * $N), e.innovations, sizeof(double) * $NY);
        memcpy(told + 1 + (2 * $N) + $NY, e.whitened, sizeof(double) * $NY);
        told[1 + (2 * $N) + (2 * $NY)] = m[2];
    }
    return count;
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
    failed = @predict(self->t[0], x, in, chart, S);
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
    for (int i = 0; i < $SHOWN; i++) {
        out[i] = self->x[i];
    }
    out[$SHOWN] = nis;
    out[$SHOWN + 1] = (@real)failed;
