/* tanh(u) = 1 - 2 / (exp(2u) + 1) */
static void hyperbolic_tangent(float *units, size_t n_units)
{
    size_t u;
    for (u = 0; u < n_units; u++)
        units[u] = 1.0f - 2.0f / (expf(2.0f * units[u]) + 1.0f);
}
