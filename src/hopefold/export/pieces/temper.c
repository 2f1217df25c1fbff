/* Probabilities at the temperature: to the power of 1 / HOPEFOLD_TEMPERATURE, divided by their sum.
   The largest one becomes 1 before, so that no power overflows and their sum is not 0. */
static void temper(float *probabilities, float largest)
{
    float total = 0.0f;
    int c;
    for (c = 0; c < HOPEFOLD_CLASSES; c++) {
        if (probabilities[c] < HOPEFOLD_LEAST_SHARE)
            probabilities[c] = HOPEFOLD_LEAST_SHARE;
        probabilities[c] = powf(probabilities[c] / largest, 1.0f / HOPEFOLD_TEMPERATURE);
        total += probabilities[c];
    }
    for (c = 0; c < HOPEFOLD_CLASSES; c++)
        probabilities[c] /= total;
}
