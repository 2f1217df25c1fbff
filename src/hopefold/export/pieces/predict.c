int hopefold_predict(const float *row, float *probabilities)
{
    float point[HOPEFOLD_COMPONENTS], total = 0.0f;
    int c, best = 0;
    hopefold_transform(row, point);
    for (c = 0; c < HOPEFOLD_CLASSES; c++)
        probabilities[c] = 0.0f;
    for (c = 0; c < HOPEFOLD_COMPONENTS; c++)
        if (!(point[c] - point[c] == 0.0f)) /* infinite or NaN */
            return -1;
    classify(point, probabilities);
    for (c = 0; c < HOPEFOLD_CLASSES; c++) {
        probabilities[c] *= class_weights[c];
        total += probabilities[c];
    }
    if (!(total > 0.0f)) /* too far from all references */
        return -1;
    for (c = 0; c < HOPEFOLD_CLASSES; c++) {
        probabilities[c] /= total;
        if (probabilities[c] > probabilities[best])
            best = c;
    }
#ifdef HOPEFOLD_TEMPERATURE
    temper(probabilities, probabilities[best]);
#endif
    return best;
}
