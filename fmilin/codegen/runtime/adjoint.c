/* Adjoint derivatives: the transposes of model_product(), in reverse. Included where they are offered. */

/* b := W^-T b */
static void solve_transposed(const Model *m, double *b)
{
    for (int j = 0; j < NW; j++) b[j] *= m->column_scale[j];
    for (int k = 0; k < NW; k++) {
        b[k] /= m->W[k * NW + k];
        for (int j = k + 1; j <= LAST_COLUMN(k); j++) b[j] -= m->W[k * NW + j] * b[k];
    }
    for (int k = NW - 1; k >= 0; k--) {
        for (int i = k + 1; i <= LAST_ROW(k); i++) b[k] -= m->W[i * NW + k] * b[i];
        double kept = b[m->pivot[k]];
        b[m->pivot[k]] = b[k];
        b[k] = kept;
    }
    for (int i = 0; i < NW; i++) b[i] *= m->row_scale[i];
}

/* result += (partial derivatives at these entries)' times seed */
static void multiply_transposed(const Entry *entries, int count, const double *partials, const double *seed,
                                double *result)
{
    for (int k = 0; k < count; k++) result[entries[k].column] += partials[k] * seed[entries[k].row];
}

/* m->ds along m->dz: ds = (dz/ds)' dz + (de/ds)' W^-T (dz/dw)' dz, for all columns. */
static int model_adjoint_product(Model *m)
{
    int status = model_differentiate(m, ALL_COMPUTED);
    if (status != SOLVED) return status;
    memset(m->dw, 0, sizeof m->dw);
    memset(m->ds, 0, sizeof m->ds);
    multiply_transposed(Z_W, N_Z_W, m->jacobian + AT_Z_W, m->dz, m->dw);
    solve_transposed(m, m->dw);
    multiply_transposed(E_MOTION, N_E_MOTION, m->jacobian + AT_E_MOTION, m->dw, m->ds);
    multiply_transposed(Z_MOTION, N_Z_MOTION, m->jacobian + AT_Z_MOTION, m->dz, m->ds);
    multiply_transposed(E_SETTINGS, N_E_SETTINGS, m->jacobian + AT_E_SETTINGS, m->dw, m->ds);
    multiply_transposed(Z_SETTINGS, N_Z_SETTINGS, m->jacobian + AT_Z_SETTINGS, m->dz, m->ds);
    return SOLVED;
}
