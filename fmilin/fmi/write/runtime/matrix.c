/* Products of matrices that are kept by rows. */

/* r = M v + (what is in r). Four rows at a time: their sums do not wait for each other. */
static void add_product(size_t rows, size_t columns, const double *M, const double *v, double *r)
{
    size_t i = 0;
    for (; i + 4 <= rows; i += 4) {
        const double *M0 = M + i * columns, *M1 = M0 + columns, *M2 = M1 + columns, *M3 = M2 + columns;
        double s0 = r[i], s1 = r[i + 1], s2 = r[i + 2], s3 = r[i + 3];
        for (size_t j = 0; j < columns; j++) {
            s0 += M0[j] * v[j];
            s1 += M1[j] * v[j];
            s2 += M2[j] * v[j];
            s3 += M3[j] * v[j];
        }
        r[i] = s0, r[i + 1] = s1, r[i + 2] = s2, r[i + 3] = s3;
    }
    for (; i < rows; i++)
        for (size_t j = 0; j < columns; j++) r[i] += M[i * columns + j] * v[j];
}

#if WITH_ADJOINT
/* r = M' v + (what is in r). */
static void add_transposed_product(size_t rows, size_t columns, const double *M, const double *v, double *r)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) r[j] += M[i * columns + j] * v[i];
}
#endif

enum { TILE_ROWS = 4, TILE_COLUMNS = 8, TILE_DEPTH = 256 };

/* A tile of R += P Q, with the part of Q that it needs packed together. */
static void add_tile(size_t depth, size_t n, const double *P, const double *packed, double *R, size_t columns)
{
    double sums[TILE_ROWS][TILE_COLUMNS] = {{0.0}};
    for (size_t k = 0; k < depth; k++)
        for (int i = 0; i < TILE_ROWS; i++)
            for (int j = 0; j < TILE_COLUMNS; j++) sums[i][j] += P[(size_t)i * n + k] * packed[k * TILE_COLUMNS + (size_t)j];
    for (int i = 0; i < TILE_ROWS; i++)
        for (size_t j = 0; j < columns; j++) R[(size_t)i * n + j] += sums[i][j];
}

/* The rows at the end, fewer than a tile has. */
static void add_last_rows(size_t rows, size_t depth, size_t n, const double *P, const double *packed, double *R,
                          size_t columns)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < depth; k++)
            for (size_t j = 0; j < columns; j++) R[i * n + j] += P[i * n + k] * packed[k * TILE_COLUMNS + j];
}

/* R = P Q, all (n, n); in blocks that fit into the caches. R is neither P nor Q. */
static void multiply_square(size_t n, const double *P, const double *Q, double *R)
{
    double packed[TILE_DEPTH * TILE_COLUMNS];
    memset(R, 0, sizeof(double) * n * n);
    for (size_t k0 = 0; k0 < n; k0 += TILE_DEPTH) {
        size_t depth = n - k0 < TILE_DEPTH ? n - k0 : TILE_DEPTH;
        for (size_t j0 = 0; j0 < n; j0 += TILE_COLUMNS) {
            size_t columns = n - j0 < TILE_COLUMNS ? n - j0 : TILE_COLUMNS;
            for (size_t k = 0; k < depth; k++)
                for (size_t j = 0; j < TILE_COLUMNS; j++)
                    packed[k * TILE_COLUMNS + j] = j < columns ? Q[(k0 + k) * n + j0 + j] : 0.0;
            size_t i = 0;
            for (; i + TILE_ROWS <= n; i += TILE_ROWS)
                add_tile(depth, n, P + i * n + k0, packed, R + i * n + j0, columns);
            add_last_rows(n - i, depth, n, P + i * n + k0, packed, R + i * n + j0, columns);
        }
    }
}
