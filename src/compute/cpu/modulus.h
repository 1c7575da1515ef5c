/* Sums of the moduli of complex differences, which VLP_MINUS_MODULUS needs, and their gradients: a
 * faster specialization of the formulas in compute/similarity.h. Rows hold `half` real parts, then as
 * many imaginary parts.
 *
 * One row is compared with at most four others at a time; whether it is the query or the answer makes no
 * difference. The result for two rows depends on these two alone, not on the count or the position of
 * others. */
#ifndef VLP_COMPUTE_CPU_MODULUS_H
#define VLP_COMPUTE_CPU_MODULUS_H

#include <stdbool.h>
#include <stdint.h>

enum { CPU_MODULUS_ROWS = 4 };

/* The version for an instruction set. */
typedef struct cpu_modulus {
    const char *name;
    bool (*runs)(void); /* on this processor */
    /* sums[i] = sum of the moduli of one - others[i], each within two units in the last place of the
     * root of its square. Where a square is zero, subnormal or non-finite, the sum may be non-finite.
     */
    void (*sums)(float *sums, const float *one, const float *const *others, int32_t count, int32_t half);
    /* Adds the gradients of - weights[i] sums[i] to those of both rows; a modulus of at most
     * VLP_TINY_DISTANCE has none. A row may be among the others twice. */
    void (*backward)(float *one_grad, float *const *others_grad, const float *weights, const float *one,
                     const float *const *others, int32_t count, int32_t half);
} cpu_modulus;

/* All versions, the best first, then NULL; the last runs everywhere. */
extern const cpu_modulus *const cpu_modulus_versions[];
/* The best that runs here. */
const cpu_modulus *cpu_modulus_choose(void);

/* The sums of a version; non-finite ones are computed again with sqrtf. */
void cpu_modulus_sums(const cpu_modulus *version, float *sums, const float *one,
                      const float *const *others, int32_t count, int32_t half);

#endif
