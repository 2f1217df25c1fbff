/* The same with whole numbers as weights, and a factor for those of each sum. */
static void weigh_int8(const signed char *weights, const float *factor, const float *bias,
                       const float *inputs, size_t n_inputs, float *restrict sums, size_t n_sums)
{
    size_t i, s;
    for (s = 0; s < n_sums; s++)
        sums[s] = 0.0f;
    for (i = 0; i < n_inputs; i++, weights += n_sums) {
        const float input = inputs[i];
        if (input == 0.0f) /* as most pixels are */
            continue;
        for (s = 0; s < n_sums; s++)
            sums[s] += (float)weights[s] * input;
    }
    for (s = 0; s < n_sums; s++)
        sums[s] = sums[s] * factor[s] + bias[s];
}
