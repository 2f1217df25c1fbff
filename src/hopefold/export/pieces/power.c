/* units = units ^ order */
static void power(float *units, size_t n_units, int order)
{
    size_t u;
    int times;
    for (u = 0; u < n_units; u++) {
        const float base = units[u];
        for (times = 1; times < order; times++)
            units[u] *= base;
    }
}
