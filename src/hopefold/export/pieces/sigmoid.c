static void sigmoid(float *units, size_t n_units)
{
    size_t u;
    for (u = 0; u < n_units; u++)
        units[u] = 1.0f / (1.0f + expf(-units[u]));
}
