/* sums = weights x inputs + bias. The weights of an input lie side by side, for all sums. */
static void weigh(const float *weights, const float *bias, const float *inputs, size_t n_inputs,
                  float *restrict sums, size_t n_sums)
{
    size_t i, s;
    for (s = 0; s < n_sums; s++)
        sums[s] = bias ? bias[s] : 0.0f;
    for (i = 0; i < n_inputs; i++, weights += n_sums) {
        const float input = inputs[i];
        if (input == 0.0f) /* as most pixels are */
            continue;
        for (s = 0; s < n_sums; s++)
            sums[s] += weights[s] * input;
    }
}
