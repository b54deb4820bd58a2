static void @accumulate(int rows, int columns, const @real *matrix, const @real *vector, @real *sum)
{
    for (int i = 0; i < rows; i++) {
        @real s = sum[i];

        for (int j = 0; j < columns; j++) {
            s += matrix[(i * columns) + j] * vector[j];
        }
        sum[i] = s;
    }
}
